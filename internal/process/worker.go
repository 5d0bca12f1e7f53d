//go:build linux

package process

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

const (
	// stopGrace is how long Run waits for workers when it is to end.
	stopGrace  = 5 * time.Second
	releaseGap = 5 * time.Second // between two calls of Table.releaseAll
)

// worker is a goroutine that reads processes.
type worker struct {
	alarm func(time.Duration) // has Table.overdue called later; 0: not any more
	wake  func(time.Duration) // has it look at the queue then, while it is idle
	due   *wakeup.Alarm       // that it waits for then
	tid   atomic.Int32        // of its thread

	// What it is looking at. Guarded by Table.mu.
	process *Process // nil: nothing
	owner   executable.Owner
	began   time.Time
	late    bool // replaced; ends when this look does
	hung    bool // given up
}

// workers are those of one Run. What they wait for is no timer of Go's: see package wakeup.
type workers struct {
	t       *Table
	ctx     context.Context
	n       sync.WaitGroup
	lookout *lookout
}

// Run reads processes until the context ends. Events that were handled before
// wait for it. The table is of no use afterwards but for
// Process and the Info that it has. An error says that it cannot begin.
func (t *Table) Run(ctx context.Context) error {
	defer t.files.Close()
	defer t.over.Store(true)
	alarms, err := newAlarms(1 + t.opts.Workers)
	if err != nil {
		return fmt.Errorf("wait for processes: %w", err)
	}
	c := &workers{t: t, ctx: ctx, lookout: newLookout(alarms[0])}
	c.n.Go(func() { c.lookout.run(c.late) })
	for _, due := range alarms[1:] {
		c.hire(due)
	}
	if t.opts.Unwinder != nil {
		c.n.Go(func() { t.rows.Run(ctx) })
	}
	t.makeUp(ctx)
	closeAlarms(alarms)
	gone := make(chan struct{})
	go func() {
		c.n.Wait()
		close(gone)
	}()
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-gone:
	case <-grace.C:
		t.log.Warn("A worker hangs in a process and is left behind.")
	}
	return nil
}

// makeUp does what no event tells of, until the context ends.
func (t *Table) makeUp(ctx context.Context) {
	rescan, watch := time.NewTicker(t.opts.RescanInterval), time.NewTicker(releaseGap)
	defer rescan.Stop()
	defer watch.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-rescan.C:
			t.rescan(t.opts.RescanInterval / 2) // done before the next pass, and not all at once
		case <-watch.C:
			t.releaseAll()
		}
	}
}

func newAlarms(n int) ([]*wakeup.Alarm, error) {
	var alarms []*wakeup.Alarm
	for range n {
		alarm, err := wakeup.NewAlarm()
		if err != nil {
			closeAlarms(alarms)
			return nil, err
		}
		alarms = append(alarms, alarm)
	}
	return alarms, nil
}

func closeAlarms(alarms []*wakeup.Alarm) {
	for _, alarm := range alarms {
		_ = alarm.Close() // nothing can be done about an error
	}
}

func (c *workers) hire(due *wakeup.Alarm) {
	w := &worker{due: due, wake: due.Set}
	w.alarm = func(after time.Duration) { c.lookout.set(w, after) }
	c.n.Go(func() { w.work(c.ctx, c.t) })
}

// late is called when a look has taken long. A worker that is replaced waits no more: the new
// one has its alarm.
func (c *workers) late(w *worker) {
	if c.t.overdue(w) {
		c.hire(w.due)
	}
}

// spend counts the CPU time of reading processes.
func (t *Table) spend(job func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := t.opts.cpuTime()
	job()
	t.opts.CPU.Spend(budget.Processes, time.Duration(t.opts.cpuTime()-began))
}

func (w *worker) work(ctx context.Context, t *Table) {
	var s scratch
	for ctx.Err() == nil && !w.late {
		p, todo := t.next(w)
		if p == nil {
			if w.due.Wait() != nil {
				return // closed
			}
			continue
		}
		if t.begin(w, p, todo) {
			t.spend(func() {
				w.tid.Store(int32(unix.Gettid()))
				t.run(p, todo, &s)
			})
			t.done(w, p)
		}
	}
}
