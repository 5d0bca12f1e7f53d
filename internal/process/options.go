//go:build linux

package process

import (
	"cmp"
	"math"
	"os"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// Publisher tells the sampling programs what they need to know of a process.
// Calls come from several goroutines, for one process one after the other, but for
// ForgetRunning: its end may be noticed while it is looked at.
type Publisher interface {
	// SetLabelSources replaces the label sources of a process; none is news too.
	// The slice belongs to the callee.
	// Samples of the process are wanted again if they were not.
	SetLabelSources(id record.ProcessID, sources []record.LabelSource) error
	// Filter tells that no samples of a process are wanted.
	Filter(id record.ProcessID) error
	// Forget takes back what was set for a process that has ended. An unknown process is no error.
	Forget(id record.ProcessID) error
	// ForgetRunning is Forget for a process that may go on to run: what the sampling programs have let it begin
	// with goes, too. It is called with the table locked, for each process that finds no room: it has to be cheap
	// where nothing is known.
	ForgetRunning(id record.ProcessID) error
}

// Options of a Table. Zero values stand for the defaults.
type Options struct {
	FS        procfs.FS
	Publisher Publisher // required
	Unwinder  Unwinder  // nil: nobody needs unwind rows
	Programs  Programs  // nil: no process begins with label sources
	// NameFile returns what an open file is to the kernel when a process maps it; nil: what
	// several mounts show of one file is several.
	NameFile  func(*os.File) (record.FileKey, error)
	Logger    *zap.Logger // default: none
	Selection *Selection  // nil: all processes are wanted

	// Runtimes are the kinds of language runtimes whose functions are wanted.
	Runtimes [record.NumRuntimes]bool
	// CommandLineBytes asks for the arguments of processes, of at most this many
	// bytes; 0: not at all.
	CommandLineBytes int
	// OffCPU says that there are samples of threads that leave the CPU.
	OffCPU bool
	// Environment reads the resource that a process's environment variables
	// describe.
	Environment bool
	// MaxProcesses in the table, those included that exited a moment ago.
	// Samples of others are attributed to one process without a name.
	MaxProcesses int
	// MaxFiles whose facts are cached.
	MaxFiles int
	// MaxDescriptors are kept open for symbolization.
	MaxDescriptors int
	// MaxRowBytes of unwind rows are kept loaded.
	MaxRowBytes int
	// MaxRowTables of unwind rows are kept loaded: each holds a descriptor. Negative: none. That
	// holds for MaxDescriptors, too.
	MaxRowTables int
	// RescanInterval is the time in which each process that is sampled is looked at anew, in
	// case events were lost.
	RescanInterval time.Duration
	// Workers is the number of goroutines that read processes.
	Workers int
	// Memory is told what processes and files take; when little is left, less is kept
	// of each. nil: no limit.
	Memory *budget.Memory
	// CPU is what the workers may spend; nil: no limit.
	CPU *budget.CPU
	// Alarm wakes the workers, who need it; Run closes it.
	Alarm Alarm
	// SamplesRead returns until when the samples that were submitted have been looked up, in
	// CLOCK_MONOTONIC; nil: that is not known.
	SamplesRead func() int64
	// SamplePeriod is the time on a CPU between two samples; 0: short.
	SamplePeriod time.Duration
	// Now returns CLOCK_MONOTONIC in ns, the clock of Event.TimeNs.
	Now func() int64

	// cpuTime returns CLOCK_THREAD_CPUTIME_ID in ns.
	cpuTime func() int64
	// threadTime returns the CPU time of a thread of ours in ns.
	threadTime func(tid int) int64
	// bootTime returns CLOCK_BOOTTIME in ns.
	bootTime func() int64
	// memory replaces the memory of processes in tests.
	memory func(pid int) tlsresolve.Memory
}

// Alarm is *wakeup.Alarm: a timer that one goroutine waits for, until it is closed.
type Alarm interface {
	Set(after time.Duration) // 0: never
	Wait() error
	Close() error
}

// maxEnvironmentBytes of a process's environment are read.
const maxEnvironmentBytes = 64 << 10

const (
	defaultMaxProcesses = 32 << 10
	defaultMaxFiles     = 4 << 10
	// DefaultMaxDescriptors is Options.MaxDescriptors where that is 0.
	DefaultMaxDescriptors = 256
	defaultMaxRowBytes    = 64 << 20
	defaultRescanInterval = 30 * time.Second
	defaultWorkers        = 2
)

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	o.MaxProcesses = cmp.Or(o.MaxProcesses, defaultMaxProcesses)
	o.MaxFiles = cmp.Or(o.MaxFiles, defaultMaxFiles)
	o.MaxDescriptors = cmp.Or(o.MaxDescriptors, DefaultMaxDescriptors)
	o.MaxRowBytes = cmp.Or(o.MaxRowBytes, defaultMaxRowBytes)
	o.MaxRowTables = cmp.Or(o.MaxRowTables, record.MaxUnwindTables)
	o.Workers = cmp.Or(o.Workers, defaultWorkers)
	o.RescanInterval = cmp.Or(o.RescanInterval, defaultRescanInterval)
	if o.Now == nil {
		o.Now = monotonic()
	}
	if o.cpuTime == nil {
		o.cpuTime = func() int64 { return budget.Clock(unix.CLOCK_THREAD_CPUTIME_ID) }
	}
	if o.threadTime == nil {
		o.threadTime = budget.ThreadTime
	}
	if o.bootTime == nil {
		o.bootTime = func() int64 { return budget.Clock(unix.CLOCK_BOOTTIME) }
	}
	if o.memory == nil {
		o.memory = func(pid int) tlsresolve.Memory { return procfs.Memory{PID: pid} }
	}
}

// monotonic returns a clock that tells CLOCK_MONOTONIC, by the one of the runtime, which is
// the same and needs no system call. The two are read close together: the closest of a few.
func monotonic() func() int64 {
	const tries = 5
	var base int64
	var at time.Time
	closest := time.Duration(math.MaxInt64)
	for range tries {
		before := time.Now()
		now := budget.Clock(unix.CLOCK_MONOTONIC)
		if took := time.Since(before); took < closest {
			closest, base, at = took, now, before
		}
	}
	return func() int64 { return base + int64(time.Since(at)) }
}
