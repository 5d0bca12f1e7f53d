//go:build linux

package process

import (
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

// queue holds the processes that wait for work, the most urgent one first. A
// process is in it at most once, so it needs no bound of its own.
type queue []*Process

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].dueNs != q[j].dueNs {
		return q[i].dueNs < q[j].dueNs
	}
	return q[i].sequence < q[j].sequence
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	p := x.(*Process)
	p.index = len(*q)
	*q = append(*q, p)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return p
}

// schedule adds work for a process, due at a time. What is due earlier stays
// so; an urgent job comes before all others. The table is locked.
func (t *Table) schedule(p *Process, w work, dueNs int64) {
	sooner := p.work == 0 || dueNs < p.dueNs
	p.work |= w
	if sooner {
		p.dueNs = dueNs
	}
	switch {
	case p.state == jobQueued:
		if sooner {
			p.sequence = t.nextSequence()
			heap.Fix(&t.queue, p.index)
			t.wakeFor(p)
		}
	case p.state == jobRunning: // the worker puts it back
	case p.state == jobWaiting && p.work.reads(): // for its user's turn
	default:
		t.enqueue(p)
	}
}

func (t *Table) enqueue(p *Process) {
	t.push(p)
	t.wakeFor(p)
}

func (t *Table) push(p *Process) {
	p.state, p.sequence = jobQueued, t.nextSequence()
	heap.Push(&t.queue, p)
}

// wakeFor has a worker wake up for a process that is the most urgent one now. The table is locked.
func (t *Table) wakeFor(p *Process) {
	if p.index == 0 {
		t.await(p.dueNs)
	}
}

// await has one of the idle workers look at the queue at a time, unless one will before. Those
// that are not idle do when they are. The table is locked.
func (t *Table) await(ns int64) {
	if ns >= t.awaitedNs {
		return
	}
	if t.awaited == nil {
		if len(t.idle) == 0 {
			return
		}
		t.awaited = t.idle[len(t.idle)-1]
	}
	t.awaitedNs = ns
	t.awaited.wake(time.Duration(ns - t.now()))
}

// rest has a worker be idle, and one of those that are look at the queue at a time. The table
// is locked.
func (t *Table) rest(w *worker, ns int64) {
	t.idle = append(t.idle, w)
	t.awaitedNs = never // whatever was awaited: this is the time now
	t.await(ns)
}

// rouse notes that a worker is not idle. The table is locked.
func (t *Table) rouse(w *worker) {
	if i := slices.Index(t.idle, w); i >= 0 {
		t.idle = slices.Delete(t.idle, i, i+1)
	}
	if t.awaited == w {
		t.awaited, t.awaitedNs = nil, never
	}
}

// nextSequence keeps those that are equally urgent in order.
func (t *Table) nextSequence() uint64 {
	t.sequence++
	return t.sequence
}

// urgent is a due time before all others.
const urgent = 0

// never is one after all others.
const never = math.MaxInt64

// helpAfter is when another worker is woken for what is due while one reads a process: most
// often that has done by then, and takes it as well.
const helpAfter = 500 * time.Microsecond

// next gives a worker the most urgent process that is due, and the work, which is the
// worker's now. If there is none, the worker is idle: it is to wait until it is woken.
func (t *Table) next(w *worker) (p *Process, todo work) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rouse(w)
	if len(t.queue) == 0 {
		t.rest(w, never)
		return nil, 0
	}
	now := t.now()
	if due := t.queue[0].dueNs; due > now {
		t.rest(w, due)
		return nil, 0
	}
	if delay := t.opts.CPU.Delay(budget.Processes); delay > 0 {
		t.rest(w, now+int64(delay))
		t.awaitedNs = urgent // no sooner than that, whatever comes
		return nil, 0
	}
	p = heap.Pop(&t.queue).(*Process)
	todo, p.work = p.work, 0
	p.state = jobRunning
	if len(t.queue) > 0 {
		t.await(max(t.queue[0].dueNs, now+int64(helpAfter)))
	}
	return p, todo
}

// done gives a process back, to wait for the work that has come meanwhile.
func (t *Table) done(w *worker, p *Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(w)
	p.state = jobIdle
	switch {
	case p.work == 0:
	case w.late:
		t.enqueue(p)
	default:
		t.push(p) // the worker itself looks at the queue next
	}
}

// cancel takes a process out of the queue.
func (t *Table) cancel(p *Process) {
	p.work = 0
	switch p.state {
	case jobQueued:
		heap.Remove(&t.queue, p.index)
		p.state = jobIdle
	case jobWaiting:
		p.state = jobIdle // Table.release takes it out of userLooks.waiting
	}
}
