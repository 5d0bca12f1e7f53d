//go:build linux && (amd64 || arm64)

package pipeline

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

// follower tells the process table what happens to processes, makes up for what it has
// missed, and follows CPU hotplug. It reads until the sampler is closed.
type follower struct {
	log     *zap.Logger
	report  func(Concern, error)
	sampler *bpf.Sampler
	table   *process.Table
	stream  *stream                   // of the sampler, which counts the events that were lost
	handle  func([]record.Event) bool // of the table
	hurry   func()                    // of the sampler
	update  func() (bool, error)      // the sampler's UpdateCPUs
	list    func() error              // scan
	seconds *wakeup.Waiter            // between two repairs
	alarm   *wakeup.Alarm             // of the table, which closes it if it ever runs
	some    atomic.Bool               // events were read since the last repair
	stopped chan struct{}             // closed when sampling has ended
	done    sync.WaitGroup
}

func newFollower(o *Options, sampler *bpf.Sampler, table *process.Table, of *stream, alarm *wakeup.Alarm) (*follower, error) {
	seconds, err := wakeup.NewSlowing(repairInterval, 2*repairInterval, -1)
	if err != nil {
		return nil, fmt.Errorf("follow processes: %w", err)
	}
	f := &follower{
		log: o.Logger, report: o.Report, sampler: sampler, table: table, stream: of,
		handle: table.HandleEvents, hurry: sampler.Hurry, update: sampler.UpdateCPUs, seconds: seconds, alarm: alarm, stopped: make(chan struct{}),
	}
	f.list = f.scan
	return f, nil
}

func (f *follower) start() {
	f.done.Go(f.followProcesses)
	f.done.Go(f.followMappings)
	f.done.Go(f.repair)
}

// stop ends what does not end with the sampler. The table's workers go on: the last batches wait
// for what they read.
func (f *follower) stop() {
	close(f.stopped)
	_ = f.seconds.Close() // nothing can be done about an error
}

// close may be called twice.
func (f *follower) close() { _ = errors.Join(f.seconds.Close(), f.alarm.Close()) } // nothing can be done about an error

// scan lists the processes that there are.
func (f *follower) scan() error {
	return f.sampler.Scan(f.table.HandleEvent)
}

// eventsAtOnce are taken note of together.
const eventsAtOnce = 512

func (f *follower) followProcesses() {
	events := make([]record.Event, eventsAtOnce)
	for {
		n, err := f.sampler.ReadEvents(events)
		if errors.Is(err, bpf.ErrClosed) {
			return
		}
		if err != nil {
			f.degraded(ConcernProcessEvents, "process events have ended: new processes will be seen late", err)
			return
		}
		f.take(events[:n])
	}
}

// take has repairs come in the shorter interval: where there are events, some may be lost.
func (f *follower) take(events []record.Event) {
	f.some.Store(true)
	f.seconds.Hurry(2 * repairInterval)
	if f.handle(events) {
		f.hurry()
	}
}

func (f *follower) followMappings() {
	err := f.sampler.ReadMappingEvents(func(events []record.Event) { f.table.HandleEvents(events) })
	if !errors.Is(err, bpf.ErrClosed) {
		f.degraded(ConcernMappingEvents, "mapping events have ended: libraries loaded later will be seen late", err)
	}
}

func (f *follower) degraded(of Concern, what string, err error) {
	f.log.Error(what, zap.Error(err))
	f.report(of, fmt.Errorf("%s: %w", what, err))
}

// repairInterval is how often CPUs that came or went are looked for, and events of
// processes that found no room; half as often where no process begins or ends.
const repairInterval = time.Second

// repair follows what no event tells of.
func (f *follower) repair() {
	var r repairs
	for {
		if _, err := f.seconds.Wait(nil); err != nil {
			return // closed
		}
		f.followCPUs(&r)
		if f.some.Swap(false) || r.list != "" { // else there is room for them
			f.followLosses(&r)
		}
	}
}

// repairs is what was found before.
type repairs struct {
	cpus      string       // what is wrong with CPUs, if something is
	list      string       // likewise with listing the processes
	madeUpFor bpf.Counters // lost events
}

func (f *follower) followCPUs(r *repairs) {
	lost, err := f.update()
	if lost {
		f.handle([]record.Event{{Kind: record.EventMappingsLost}})
	}
	f.tell(ConcernCPUs, &r.cpus, "some CPUs are not sampled", err)
}

// tell says what is wrong with a concern, or that nothing is any more, if that was not said before.
func (f *follower) tell(of Concern, before *string, what string, err error) {
	switch {
	case err == nil && *before != "":
		*before = ""
		f.report(of, nil)
	case err != nil && err.Error() != *before:
		*before = err.Error()
		f.degraded(of, what, err)
	}
}

// followLosses makes up for events of processes that were lost: the processes that run are
// listed again, and those that are known are looked at, if it may have been many. Both are done within two seconds
// of the loss, unless the machine has no time for it, or they cannot be listed: that is tried again then.
func (f *follower) followLosses(r *repairs) {
	lost := f.stream.bpfCounters()
	if lost.EventsDropped == r.madeUpFor.EventsDropped && lost.EventsMissed == r.madeUpFor.EventsMissed {
		return
	}
	err := f.list()
	f.tell(ConcernProcesses, &r.list, "events of processes were lost, and the processes cannot be listed again: some are missing", err)
	if err != nil {
		return
	}
	if lost.EventsDropped != r.madeUpFor.EventsDropped {
		f.handle([]record.Event{{Kind: record.EventLost}})
	}
	r.madeUpFor = lost
}
