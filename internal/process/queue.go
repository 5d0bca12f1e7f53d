//go:build linux

package process

import (
	"container/heap"
	"math"

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

// jobs are what is to be done for processes, and who waits to do it. Guarded by Table.mu.
type jobs struct {
	queue    queue
	sequence uint64
	// awaitedNs is when the worker that began to wait last will look at the queue by itself.
	awaitedNs int64
	wake      chan struct{} // a worker that waits takes from it
	held      bool          // nobody is woken before more has been scheduled
}

func newJobs() *jobs { return &jobs{awaitedNs: math.MaxInt64, wake: make(chan struct{}, 1)} }

// schedule adds work for a process, due at a time. What is due earlier stays
// so; an urgent job comes before all others. The table is locked.
func (j *jobs) schedule(p *Process, w work, dueNs int64) {
	sooner := p.work == 0 || dueNs < p.dueNs
	p.work |= w
	if sooner {
		p.dueNs = dueNs
	}
	switch {
	case p.state == jobQueued:
		if sooner {
			p.sequence = j.nextSequence()
			heap.Fix(&j.queue, p.index)
			j.wakeFor(p)
		}
	case p.state == jobRunning: // the worker puts it back
	case p.state == jobWaiting && p.work.reads(): // for its user's turn
	default:
		j.enqueue(p)
	}
}

func (j *jobs) enqueue(p *Process) {
	p.state, p.sequence = jobQueued, j.nextSequence()
	heap.Push(&j.queue, p)
	j.wakeFor(p)
}

// wakeFor wakes a worker if none of those that wait would be in time for a process. The
// table is locked.
func (j *jobs) wakeFor(p *Process) {
	if p.index == 0 && p.dueNs < j.awaitedNs && !j.held {
		j.wakeWorkers()
	}
}

// hold has what is scheduled until release wake nobody.
func (j *jobs) hold() { j.held = true }

// release wakes a worker for what is the most urgent by now.
func (j *jobs) release() {
	j.held = false
	if len(j.queue) > 0 {
		j.wakeFor(j.queue[0])
	}
}

// nextSequence keeps those that are equally urgent in order.
func (j *jobs) nextSequence() uint64 {
	j.sequence++
	return j.sequence
}

// urgent is a due time before all others.
const urgent = 0

// next takes the most urgent process that is due, or says in how many ns one
// will be, or -1 if none waits. It returns the work, which is the caller's now.
func (t *Table) next() (p *Process, w work, waitNs int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.jobs.awaitedNs = math.MaxInt64
	if len(t.jobs.queue) == 0 {
		return nil, 0, -1
	}
	now := t.now()
	if wait := t.jobs.queue[0].dueNs - now; wait > 0 {
		t.jobs.awaitedNs = t.jobs.queue[0].dueNs
		return nil, 0, wait
	}
	if delay := t.opts.CPU.Delay(budget.Processes); delay > 0 {
		t.jobs.awaitedNs = urgent // no sooner than that, whatever comes
		return nil, 0, int64(delay)
	}
	p = heap.Pop(&t.jobs.queue).(*Process)
	w, p.work = p.work, 0
	p.state = jobRunning
	if len(t.jobs.queue) > 0 {
		t.jobs.wakeWorkers() // another worker may take the next one
	}
	return p, w, 0
}

// done gives a process back, to wait for the work that has come meanwhile.
func (t *Table) done(w *worker, p *Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(w)
	p.state = jobIdle
	if p.work != 0 {
		t.jobs.enqueue(p)
	}
	if ns := p.mappedNs; ns != 0 && !p.exited {
		p.mappedNs = 0
		t.mapped(p, ns)
	}
}

func (j *jobs) wakeWorkers() {
	select {
	case j.wake <- struct{}{}:
	default: // they are awake
	}
}

// cancel takes a process out of the queue.
func (j *jobs) cancel(p *Process) {
	p.work = 0
	switch p.state {
	case jobQueued:
		heap.Remove(&j.queue, p.index)
		p.state = jobIdle
	case jobWaiting:
		p.state = jobIdle // hanging.release takes it out of userLooks.waiting
	}
}
