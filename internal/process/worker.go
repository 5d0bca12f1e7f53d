//go:build linux

package process

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// stopGrace is how long Run waits for workers when it is to end. After that it waits a second for files
	// to be closed.
	stopGrace = 4 * time.Second
	watchGap  = 5 * time.Second // between two looks at what hangs, whatever happens
)

// worker is a goroutine that reads processes.
type worker struct {
	alarm func(time.Duration) // has Table.overdue called later
	tid   atomic.Int32        // of its thread

	// What it is looking at. Guarded by Table.mu.
	process *Process // nil: nothing
	owner   executable.Owner
	began   time.Time
	late    bool // replaced; ends when this look does
	costly  bool // late, and computes
	hung    bool // given up
	alarmed bool // the alarm is set
	meter   meter
}

// workers are those of one Run.
type workers struct {
	t   *Table
	ctx context.Context
	n   sync.WaitGroup

	mu     sync.Mutex
	all    map[*worker]struct{} // that have not ended
	ending bool                 // none joins any more
}

// Run reads processes until the context ends. Events that were handled before
// wait for it. The table is of no use afterwards but for
// Process and the Info that it has.
func (t *Table) Run(ctx context.Context) {
	c := &workers{t: t, ctx: ctx, all: map[*worker]struct{}{}}
	for range t.opts.Workers {
		c.hire()
	}
	if t.opts.Unwinder != nil {
		c.n.Go(func() { t.rows.Run(ctx) })
	}
	c.n.Go(t.wakeInTime)
	rescan, watch := time.NewTicker(t.opts.RescanInterval), time.NewTicker(watchGap)
	defer rescan.Stop()
	defer watch.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-rescan.C:
			t.rescan(t.opts.RescanInterval / 2) // done before the next pass, and not all at once
		case <-watch.C:
			t.mu.Lock()
			t.hanging.releaseAll(t.jobs)
			t.hanging.watch()
			t.searchLost()
			t.mu.Unlock()
		}
	}
	gone := c.end()
	_ = t.opts.Alarm.Close() // nothing can be done about an error
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-gone:
	case <-grace.C:
		t.log.Warn("Processes do not let themselves be read: the workers that do are left behind.", zap.Ints("pid", c.looksAt()))
	}
	t.over.Store(true)
	t.files.Close()
}

// wakeInTime wakes workers when something becomes due, until the alarm is closed.
func (t *Table) wakeInTime() {
	for t.opts.Alarm.Wait() == nil {
		t.alarmed()
	}
}

func (t *Table) alarmed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.jobs.alarmNs = noAlarm
	t.jobs.rouse()
}

// end has looks end soon. The channel is closed when all workers have.
func (c *workers) end() (gone <-chan struct{}) {
	c.t.ending.Store(true)
	c.t.files.End()
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	all := make(chan struct{})
	go func() {
		c.n.Wait()
		close(all)
	}()
	return all
}

// hire has one more worker, unless all are to end: none may join while they are waited for.
func (c *workers) hire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return
	}
	w := &worker{}
	timer := time.AfterFunc(time.Hour, func() {
		if c.t.overdue(w) {
			c.hire()
		}
	})
	w.alarm = func(after time.Duration) { timer.Reset(after) }
	c.all[w] = struct{}{}
	c.n.Go(func() {
		defer timer.Stop()
		w.work(c.ctx, c.t)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, w)
	})
}

// looksAt returns the processes that workers have not come back from.
func (c *workers) looksAt() (pids []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	for w := range c.all {
		if w.process != nil {
			pids = append(pids, w.process.pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// do does work on a process, if that need not wait, and counts its CPU time.
func (w *worker) do(t *Table, p *Process, todo work, job func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w.tid.Store(int32(procfs.Thread()))
	if !t.begin(w, p, todo) {
		return
	}
	t.startMeter(w, todo)
	job()
	t.stopMeter(w)
	t.done(w, p)
}

func (w *worker) work(ctx context.Context, t *Table) {
	var s scratch
	for ctx.Err() == nil && !w.late {
		p, todo := t.next()
		if p != nil {
			w.do(t, p, todo, func() {
				t.run(p, todo, &s)
				s.release()
			})
			continue
		}
		select {
		case <-ctx.Done():
		case <-t.jobs.wake:
		}
	}
}
