package pipeline

import (
	"cmp"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

// Options of a pipeline. A number that is 0 is the one of [Defaults], unless its field says
// what else 0 is; what is false is off.
type Options struct {
	// Next is who gets what is made; at least one consumer is needed.
	Next Consumers
	// Logger of what goes wrong and of what is missing on this host; nil: nothing is logged.
	Logger *zap.Logger
	// NoticeInterval is over how long it is noticed that nothing is emitted, beside what samples
	// wait for ReportInterval; what is logged says a minute, the default.
	NoticeInterval time.Duration
	// ShutdownPatience is how long Shutdown waits for the next consumer of a signal until the consumer's context ends;
	// one that goes on nevertheless is left behind 5 s later.
	ShutdownPatience time.Duration
	// Report is told an error of a concern while that is degraded, and nil when it has recovered.
	// It must not block and is called from any goroutine; nil: nobody is told.
	Report func(Concern, error)
	// Scope is the instrumentation scope of what is emitted.
	Scope Scope

	// SamplesPerSecond and CPU. The period between two samples is fixed.
	SamplesPerSecond int
	// ReportInterval is how often a batch of profiles is handed to the next consumer.
	ReportInterval time.Duration

	Ring       RingOptions
	OffCPU     OffCPUOptions
	Targets    TargetOptions
	Labels     LabelOptions
	Metrics    MetricOptions
	Attributes AttributeOptions
	Unwind     UnwindOptions
	Symbols    SymbolOptions
	// SkipRuntimes are the language runtimes whose functions are not named; those of the others are,
	// which needs unwind rows and names.
	SkipRuntimes [record.NumRuntimes]bool
	Batches      BatchOptions
	Limits       LimitOptions
	Kernel       KernelOptions
}

// Consumers are what comes next for each signal; nil: that signal is not made.
type Consumers struct {
	Profiles xconsumer.Profiles
	Metrics  consumer.Metrics
}

// Scope is an instrumentation scope.
type Scope struct{ Name, Version string }

// RingOptions are of the kernel buffer that samples wait in.
type RingOptions struct {
	// Bytes is its size: a power of two and a multiple of the page size; 0: by
	// SamplesPerSecond and CPUs.
	Bytes int
	// UserShare is the part of a kernel buffer that unread samples of one user may fill, so
	// that the others have room; 1: all of it.
	UserShare float64
}

// OffCPUOptions are of off-CPU profiles.
type OffCPUOptions struct {
	// Threshold is the part of all switches from a thread that are looked at, drawn at
	// random; 0: none, and there are no such profiles.
	Threshold float64
	// Minimum leaves out threads that were off the CPU for less; 0: leaves out none.
	Minimum time.Duration
	// RingBytes is the size of their own kernel buffer: a power of two and a multiple of the page size.
	RingBytes int
}

// TargetOptions say which processes are sampled; zero: all.
type TargetOptions struct {
	// Selection has the selectors of what is wanted and of what is not.
	Selection targets.Selection
	// LabelledOnly samples only processes in which a label source was found.
	LabelledOnly bool
}

// selects reports whether there are processes that are not wanted.
func (o *TargetOptions) selects() bool {
	return len(o.Selection.Include) > 0 || len(o.Selection.Exclude) > 0 || o.LabelledOnly
}

// LabelOptions say what is read of the labels that programs publish.
type LabelOptions struct {
	// Skip reads no labels at all.
	Skip bool
	// Prefix of the attribute keys of custom labels; "": none. The attributes of a thread
	// context come under their own names.
	Prefix string
	// PrometheusNames of labels and resources are such as Prometheus takes for labels; else they are as published.
	PrometheusNames bool
	// Promotion names custom labels that hold ids: a set with both has them as its link
	// instead of as labels.
	Promotion labels.Promotion
	// Rules change or drop labels.
	Rules []labels.Rule
	// HashSalt of the action hash of rules; empty: a random one.
	HashSalt []byte
	// RefuseConflicts leaves out values of another type than the first of their key; else the
	// key's values are text from then on.
	RefuseConflicts bool
	// PerContainer gives each container of a user keys and budgets of its own.
	PerContainer bool
	// Budgets bound what the labels of each user may take.
	Budgets labels.Budgets
}

// MetricOptions are of metrics, where there is a consumer of them.
type MetricOptions struct {
	// LabelKeys that CPU time is told apart by, besides the process.
	LabelKeys []string
	// Interval is how often all sums are handed to the next consumer.
	Interval time.Duration
	// MaxUserSeries that have labels of their own, of each user. From twice as many on new
	// processes share one.
	MaxUserSeries int
	// Expiry is how long the series of a process that has ended are still emitted.
	Expiry time.Duration
}

// AttributeOptions say which attributes are emitted besides those that always are.
type AttributeOptions struct {
	// Trace also emits the trace link as sample attributes trace_id and span_id.
	Trace bool
	// ThreadID emits thread.id, and so keeps samples of different threads apart.
	ThreadID bool
	// ThreadName emits thread.name, and so keeps samples of threads of different names apart.
	ThreadName bool
	// CPU emits cpu.logical_number, and so keeps samples of different CPUs apart.
	CPU bool
	// CommandArgs emits the resource attribute process.command_args, which may hold secrets.
	CommandArgs bool
	// NamedServiceOnly emits service.name only of processes that name their service, and leaves that of others to a
	// processor; else these have unknown_service:NAME.
	NamedServiceOnly bool
	// Environment adds what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES of a process's
	// environment say to its resource. A process context goes before.
	Environment bool
}

// UnwindOptions say how user stacks are walked.
type UnwindOptions struct {
	// Skip has no stacks read.
	Skip bool
	// FramePointersOnly walks them by frame pointer; else by the unwind rows of the
	// executables, where there are any.
	FramePointersOnly bool
	// MaxBytes of unwind rows, in kernel memory. Files that find no room have their stacks
	// walked by frame pointer.
	MaxBytes int
}

// runtimes are the kinds of language runtimes whose functions are wanted.
func (o *Options) runtimes() (kinds [record.NumRuntimes]bool) {
	if o.Unwind.FramePointersOnly || o.Symbols.Skip {
		return kinds
	}
	for kind := record.RuntimeNone + 1; kind < record.NumRuntimes; kind++ {
		kinds[kind] = !o.SkipRuntimes[kind]
	}
	return kinds
}

// SymbolOptions say where addresses become function names.
type SymbolOptions struct {
	// Skip leaves addresses without names; else they get those that this host knows.
	Skip bool
	// MaxBytes of names of functions that are kept in memory. Those of the files and processes
	// that were not sampled for the longest time give way.
	MaxBytes int
}

// BatchOptions bound what is handed to the next consumer.
type BatchOptions struct {
	// MaxPending batches wait for the next consumer; a further one is dropped and counted.
	MaxPending int
	// MaxBytes is the estimated memory of one batch at which the user who has most of it is
	// handed over before ReportInterval has passed.
	MaxBytes int
	// MaxRequestBytes of what is handed over at once, as it is sent. Batches are split.
	MaxRequestBytes int
	// MaxUserEntries of one user in a batch have labels of their own. Samples beyond lose their
	// labels, and from twice as many on their stacks.
	MaxUserEntries int
	// MaxUserFrames of one user in a batch have addresses and names, each counted once for each process. One frame
	// stands for all further ones of the batch.
	MaxUserFrames int
	// PerUser gives each user batches of its own.
	PerUser bool
}

// LimitOptions bound the pipeline as a whole.
type LimitOptions struct {
	// MemoryBytes of all that is held in user space, as the pipeline estimates it. When little
	// is left, caches give way, then processes get less, in the end samples are dropped.
	MemoryBytes int
	// BPFMapBytes of kernel memory of all BPF maps. Those that grow with the processes get what
	// ring buffers and unwind rows leave.
	BPFMapBytes int
	// BackgroundCPU is CPU seconds a second for what is found out about processes: their
	// executables, unwind rows and names of functions.
	BackgroundCPU float64
}

// KernelOptions say how the BPF programs are loaded.
type KernelOptions struct {
	// WholeVerifierLog of the BPF verifier is in a load error; else its last lines are.
	WholeVerifierLog bool
}

// Defaults are the options that the receiver has where nothing is configured. They lack who
// gets what is made, and the scope.
func Defaults() Options {
	return Options{
		// Not a divisor of common timer rates, so that sampling does not run in
		// lockstep with periodic work.
		SamplesPerSecond: 19,
		ReportInterval:   5 * time.Second,
		NoticeInterval:   time.Minute,
		ShutdownPatience: 10 * time.Second,
		Ring:             RingOptions{UserShare: 0.5},
		OffCPU:           OffCPUOptions{Minimum: time.Millisecond, RingBytes: 4 << 20},
		Labels: LabelOptions{
			Prefix:  "process.context.label.",
			Budgets: labels.DefaultBudgets(),
		},
		Metrics:    MetricOptions{Interval: 15 * time.Second, MaxUserSeries: 2048, Expiry: 5 * time.Minute},
		Attributes: AttributeOptions{Trace: true, ThreadID: true, ThreadName: true},
		Unwind:     UnwindOptions{MaxBytes: 64 << 20},
		Symbols:    SymbolOptions{MaxBytes: 32 << 20},
		Batches:    BatchOptions{MaxPending: 4, MaxBytes: 32 << 20, MaxRequestBytes: 3584 << 10, MaxUserEntries: 65536, MaxUserFrames: 65536},
		Limits:     LimitOptions{MemoryBytes: 256 << 20, BPFMapBytes: 128 << 20, BackgroundCPU: 1},
	}
}

// complete gives numbers that are 0, and who is not there, what stands for them.
func (o *Options) complete() {
	d := Defaults()
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Report == nil {
		o.Report = func(Concern, error) {}
	}
	orDefault(&o.SamplesPerSecond, d.SamplesPerSecond)
	orDefault(&o.ReportInterval, d.ReportInterval)
	orDefault(&o.NoticeInterval, d.NoticeInterval)
	orDefault(&o.ShutdownPatience, d.ShutdownPatience)
	orDefault(&o.Ring.UserShare, d.Ring.UserShare)
	orDefault(&o.OffCPU.RingBytes, d.OffCPU.RingBytes)
	orDefault(&o.Labels.Budgets, d.Labels.Budgets)
	orDefault(&o.Metrics.Interval, d.Metrics.Interval)
	orDefault(&o.Metrics.MaxUserSeries, d.Metrics.MaxUserSeries)
	orDefault(&o.Metrics.Expiry, d.Metrics.Expiry)
	orDefault(&o.Unwind.MaxBytes, d.Unwind.MaxBytes)
	orDefault(&o.Symbols.MaxBytes, d.Symbols.MaxBytes)
	orDefault(&o.Batches.MaxPending, d.Batches.MaxPending)
	orDefault(&o.Batches.MaxBytes, d.Batches.MaxBytes)
	orDefault(&o.Batches.MaxRequestBytes, d.Batches.MaxRequestBytes)
	orDefault(&o.Batches.MaxUserEntries, d.Batches.MaxUserEntries)
	orDefault(&o.Batches.MaxUserFrames, d.Batches.MaxUserFrames)
	orDefault(&o.Limits.MemoryBytes, d.Limits.MemoryBytes)
	orDefault(&o.Limits.BPFMapBytes, d.Limits.BPFMapBytes)
	orDefault(&o.Limits.BackgroundCPU, d.Limits.BackgroundCPU)
}

func orDefault[T comparable](value *T, otherwise T) { *value = cmp.Or(*value, otherwise) }

// withoutProfiles returns the options of a pipeline that makes metrics only: what profiles
// alone have costs nothing then.
func (o Options) withoutProfiles() Options {
	o.Unwind.Skip, o.Unwind.FramePointersOnly, o.Symbols.Skip = true, true, true
	o.Attributes.Trace, o.Attributes.ThreadID, o.Attributes.ThreadName, o.Attributes.CPU = false, false, false, false
	o.Labels.Skip = o.Labels.Skip || len(o.Metrics.LabelKeys) == 0
	return o
}

// period is the CPU time between two samples.
func (o *Options) period() time.Duration {
	return time.Duration(int64(time.Second) / int64(o.SamplesPerSecond))
}
