//go:build linux

package process

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

const (
	// stuckAfter is when the worker that builds rows is given up: a file can block whoever
	// reads it.
	stuckAfter = 10 * time.Second
	// maxStuck of them are replaced by new ones.
	maxStuck = 16
	// stopGrace is how long Run waits for workers when it is to end.
	stopGrace = 5 * time.Second
	watchGap  = 5 * time.Second // between looks whether one hangs
)

// worker is a goroutine that reads processes, or one that builds rows.
type worker struct {
	job   func(*worker, context.Context, *Table)
	alarm func(time.Duration) // has Table.overdue called later
	tid   atomic.Int32        // of its thread

	// What it is looking at. Guarded by Table.mu.
	process *Process // nil: nothing
	owner   owner
	began   time.Time
	late    bool // replaced; ends when this look does
	hung    bool // given up

	// Of the one that builds rows.
	sinceNs atomic.Int64 // of the present job, 0: none
	stuck   atomic.Bool  // given up; ends when its job does
}

// workers are those of one Run.
type workers struct {
	t    *Table
	ctx  context.Context
	mu   sync.Mutex
	all  map[*worker]struct{}
	gone chan struct{} // closed when the last one has ended after ctx
	n    sync.WaitGroup
}

// Run reads processes until the context ends. Events that were handled before
// wait for it. The table is of no use afterwards but for
// Process and the Info that it has.
func (t *Table) Run(ctx context.Context) {
	c := &workers{t: t, ctx: ctx, all: map[*worker]struct{}{}, gone: make(chan struct{})}
	for range t.opts.Workers {
		c.hire((*worker).work)
	}
	if t.opts.Unwinder != nil {
		c.hire((*worker).build)
	}
	rescan, watch := time.NewTicker(t.opts.RescanInterval), time.NewTicker(min(watchGap, stuckAfter))
	defer rescan.Stop()
	defer watch.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-rescan.C:
			t.mu.Lock()
			// Done before the next pass, and not all at once.
			t.rereadAll(t.now(), t.opts.RescanInterval/2)
			t.mu.Unlock()
		case <-watch.C:
			c.watch()
			t.releaseAll()
		}
	}
	go func() {
		c.n.Wait()
		close(c.gone)
	}()
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-c.gone:
	case <-grace.C:
		t.log.Warn("A worker hangs in a process and is left behind.")
	}
	t.descriptors.closeAll()
}

func (c *workers) hire(job func(*worker, context.Context, *Table)) {
	w := &worker{job: job}
	timer := time.AfterFunc(time.Hour, func() {
		if c.t.overdue(w) {
			c.hire(job)
		}
	})
	w.alarm = func(after time.Duration) { timer.Reset(after) }
	c.mu.Lock()
	c.all[w] = struct{}{}
	c.mu.Unlock()
	c.n.Add(1)
	go func() {
		defer c.n.Done()
		defer timer.Stop()
		job(w, c.ctx, c.t)
		c.mu.Lock()
		delete(c.all, w)
		c.mu.Unlock()
	}()
}

// watch replaces the worker that builds rows if it hangs.
func (c *workers) watch() {
	c.mu.Lock()
	stuck := 0
	var replace []*worker
	for w := range c.all {
		if w.stuck.Load() {
			stuck++
		}
	}
	for w := range c.all {
		since := w.sinceNs.Load()
		late := since != 0 && c.t.now()-since > int64(stuckAfter)
		if late && stuck+len(replace) < maxStuck && !w.stuck.Swap(true) {
			replace = append(replace, w)
		}
	}
	c.mu.Unlock()
	for _, w := range replace {
		c.t.counts.stuck.Add(1)
		c.t.log.Warn("A file whose unwind rows are read does not answer: the worker that reads it is replaced.", zap.Int("others", stuck))
		c.hire(w.job)
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
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil && !w.late {
		p, todo, waitNs := t.next()
		if p != nil {
			if t.begin(w, p, todo) {
				t.spend(func() {
					w.tid.Store(int32(unix.Gettid()))
					t.run(p, todo, &s)
				})
				t.done(w, p)
			}
			continue
		}
		if waitNs < 0 {
			waitNs = int64(time.Hour) // until woken
		}
		timer.Reset(time.Duration(waitNs))
		select {
		case <-ctx.Done():
		case <-t.wake:
		case <-timer.C:
		}
	}
}
