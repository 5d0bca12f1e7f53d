//go:build linux && (amd64 || arm64)

package writercheck

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/labelread"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const (
	// lookInterval is how often files and mappings are looked at once something was found, and
	// firstInterval before.
	lookInterval  = time.Second
	firstInterval = 50 * time.Millisecond
	// pause is about the time between two stops of threads, so that the program has most of
	// the time for itself.
	pause = time.Millisecond
	// contextReadings of the process context are made between two stops.
	contextReadings = 8
	// maxRefreshes bounds the attempts to read a process context that is being written.
	maxRefreshes = 20
	// neverComplete readings of records that are being written, and none of another one, are no chance.
	neverComplete = 50
	// maxThreads bounds the threads among which one is looked for that runs.
	maxThreads = 64
	// maxHistories bounds the threads whose ways are remembered.
	maxHistories = 4096
	// clockSlackNs is how far CLOCK_BOOTTIME and the start of a process, in ticks, may disagree.
	clockSlackNs = uint64(20 * time.Millisecond)
)

// Watch looks at a process for some time, or until it ends or ctx does, and judges what it
// publishes. It fails if the process cannot be looked at in the first place, with the errors
// of process.Inspect and labelread.Stop. It can block on memory of the process that is not
// there, beyond the end of ctx.
func Watch(ctx context.Context, pid int, duration time.Duration) (*Report, error) {
	w := &watch{
		pid: pid, t: newTally(), mem: procfs.Memory{PID: pid},
		files: map[procfs.FileID]*file{}, histories: map[int]*history{}, threads: map[int]bool{},
	}
	w.context = &contextJudge{t: w.t}
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	return w.report(), nil
}

// watch is a process that is being looked at.
type watch struct {
	fs  procfs.FS
	pid int
	t   *tally
	mem procfs.Memory

	info      *process.Info
	startNs   uint64
	clockNs   int64 // by how much its CLOCK_BOOTTIME is ahead of ours
	files     map[procfs.FileID]*file
	formats   []Format
	sources   []record.LabelSource
	contexts  []uint64 // where process contexts are mapped
	current   uint64   // the one that is read
	context   *contextJudge
	histories map[int]*history
	threads   map[int]bool // whether they had labels at any stop
	reads     Reads
	goLabels  bool // a goroutine had labels
	// complete and incomplete are readings of records of threads (ThreadContext), changes says that some differ.
	complete, incomplete int
	changes              bool
	searched             time.Time // when a process context was last looked for because a name was missing
}

// history is how a thread has changed its record.
type history struct {
	pointer         uint64
	head            [recordHead]byte
	swapped, marked bool
}

func (w *watch) begin(ctx context.Context) error {
	info, err := process.Inspect(ctx, w.fs, w.pid)
	if err != nil {
		return err
	}
	stat, err := w.fs.Stat(info.PID)
	if err != nil {
		return err
	}
	w.pid, w.info, w.mem = info.PID, info, procfs.Memory{PID: info.PID}
	w.startNs = stat.StartTicks * uint64(time.Second) / procfs.TicksPerSecond
	w.startNs -= min(w.startNs, clockSlackNs)
	if own, err := w.fs.BootTimeOffset(); err == nil {
		if its, err := w.fs.BootTimeOffsetOf(w.pid); err == nil {
			w.clockNs = its - own
		}
	}
	w.look(info)
	return nil
}

// run looks until the end. That the process ends is none of its errors.
func (w *watch) run(ctx context.Context) error {
	looked := time.Now()
	for turn := 0; ctx.Err() == nil; turn++ {
		interval := lookInterval
		if len(w.formats) == 0 {
			interval = firstInterval
		}
		if time.Since(looked) > interval {
			info, err := process.Inspect(ctx, w.fs, w.pid)
			if err != nil {
				break
			}
			w.look(info)
			looked = time.Now()
		}
		w.readContexts()
		if err := w.readThread(turn); errors.Is(err, labelread.ErrPermission) || errors.Is(err, labelread.ErrHangs) {
			return err
		} else if errors.Is(err, procfs.ErrNoProcess) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
	return nil
}

// readContexts reads the process context if there is one.
func (w *watch) readContexts() {
	if len(w.contexts) == 0 {
		return
	}
	if !slices.Contains(w.contexts, w.current) { // else the same of several as before
		w.current = w.contexts[0]
		w.context.last = nil
	}
	for range contextReadings {
		p := readPublication(w.mem, w.current)
		var now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) == nil {
			w.context.judge(p, uint64(now.Nano()+w.clockNs), uint64(max(int64(w.startNs)+w.clockNs, 0)))
		}
	}
}

// refreshContext reads the process context until it is one that is not being written, or for
// a while.
func (w *watch) refreshContext() {
	if len(w.contexts) == 0 && time.Since(w.searched) > firstInterval {
		w.lookForContexts()
		w.searched = time.Now()
	}
	for range maxRefreshes {
		whole := w.context.readings - w.context.written
		w.readContexts()
		if len(w.contexts) == 0 || w.context.readings-w.context.written > whole {
			return
		}
		time.Sleep(pause)
	}
}

// report ends the watch.
func (w *watch) report() *Report {
	w.context.end()
	w.judgeSchema()
	w.reads.Threads = len(w.threads)
	for _, labelled := range w.threads {
		if !labelled {
			w.reads.Without++
		}
	}
	// A record is being written for an instant, and not each time that one looks; but one that rests may have no context.
	if w.complete == 0 && w.incomplete >= neverComplete && w.changes {
		w.t.check(ThreadContext.rule(ruleValid), false, "valid was 0 in all of %d readings, in which records changed: none was complete", w.incomplete)
	}
	w.reads.Contexts, w.reads.Written = w.context.readings, w.context.written
	r := &Report{PID: w.pid, Program: w.info.Path, Reads: w.reads}
	for _, f := range w.formats {
		if f != Go || w.goLabels || len(w.formats) == 1 { // else it only happens to be written in Go
			r.Formats = append(r.Formats, f)
		}
	}
	r.Results = w.t.all(r.Formats)
	r.inactive = inactive(w.info.Sources)
	return r
}

// inactive says why the first label source that cannot be read is not read; "" if another one is.
func inactive(sources []labelsource.Status) (why string) {
	for i := range sources {
		s := &sources[i]
		switch {
		case s.State == labelsource.Active:
			return ""
		case s.Err != "" && why == "":
			why = s.State.String() + ": " + s.Err
		}
	}
	return why
}

// judgeSchema judges what the process context says of the threads.
func (w *watch) judgeSchema() {
	c := &w.context.known
	unreadable := slices.Contains(w.formats, ProcessContext) && !w.context.decoded
	for _, f := range w.formats {
		if unreadable {
			w.t.note(f.rule(ruleSchema), "the process context could not be read")
			continue
		}
		switch f {
		case ThreadContext:
			if slices.Contains(w.formats, NodeJS) && isNodeJS(c.schema) {
				continue // another library's, which it does not speak for
			}
			if w.t.check(f.rule(ruleSchema), isTLS(c.schema), "%s", quotedOrNone(c.schema)) {
				w.t.check(f.rule(ruleSchemaName), c.schema == "tls_v1", "%s", quotedOrNone(c.schema))
			}
		case NodeJS:
			w.t.check(f.rule(ruleSchema), isNodeJS(c.schema), "%s", quotedOrNone(c.schema))
		case Go:
			if !w.goLabels || slices.Contains(w.formats, ThreadContext) || w.context.last == nil {
				continue
			}
			ok := c.schema == "" || c.schema == "go_pprof_labels_v1" && len(c.names) == 0
			w.t.check(f.rule(ruleSchema), ok, "%s, %d names", quotedOrNone(c.schema), len(c.names))
		}
	}
}
