//go:build linux

package process

import (
	"container/heap"
	"math"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

// queue holds the processes that wait for work, the most urgent one first. A
// process is in it at most once, so it needs no bound of its own.
type queue []*Process

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool { return q[i].before(q[j]) }

// before tells which of two is more urgent.
func (p *Process) before(other *Process) bool {
	if p.dueNs != other.dueNs {
		return p.dueNs < other.dueNs
	}
	return p.sequence < other.sequence
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
	queue queue
	turns map[uint32]*turn // by user id
	// owing are the workers that look at processes of users who owe time, of maxOwing.
	owing, maxOwing int
	// running are the meters of what is being done, charged at meteredNs.
	running   []*meter
	meteredNs int64
	sequence  uint64
	wake      chan struct{} // a worker that waits takes from it
	held      bool          // nobody is woken before more has been scheduled
	// alarm wakes a worker at alarmNs, or never: noAlarm. While there is CPU time for nothing, that
	// is no sooner than pausedNs, and for users who owe some, laterNs. Only tests have none.
	alarm                      Alarm
	alarmNs, pausedNs, laterNs int64
	now                        func() int64
}

// noAlarm is when an alarm comes that is not set.
const noAlarm = math.MaxInt64

func newJobs(alarm Alarm, now func() int64) *jobs {
	return &jobs{turns: map[uint32]*turn{}, alarm: alarm, alarmNs: noAlarm, now: now, wake: make(chan struct{}, 1)}
}

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
			heap.Fix(j.of(p), p.index)
			j.rouse()
		}
	case p.state == jobRunning: // the worker puts it back
	case p.state == jobWaiting && p.work.reads(): // for its user's turn
	default:
		j.enqueue(p)
	}
}

func (j *jobs) enqueue(p *Process) {
	p.state, p.sequence, p.turn = jobQueued, j.nextSequence(), nil
	heap.Push(&j.queue, p)
	j.rouse()
}

// of returns the queue that a process is in.
func (j *jobs) of(p *Process) *queue {
	if p.turn != nil {
		return &p.turn.queue
	}
	return &j.queue
}

// rouse wakes a worker if something is due, or has the alarm do so when it will be. The table is
// locked.
func (j *jobs) rouse() {
	if j.held {
		return
	}
	due, now := int64(noAlarm), j.now()
	if len(j.queue) > 0 {
		due = j.queue[0].dueNs
	}
	if due = min(due, j.laterDue()); due == noAlarm {
		j.setAlarm(noAlarm, 0)
		return
	}
	if due = max(due, j.pausedNs); due <= now {
		j.wakeWorkers()
		return
	}
	j.setAlarm(due, due-now)
}

func (j *jobs) setAlarm(ns, waitNs int64) {
	if ns == j.alarmNs {
		return
	}
	j.alarmNs = ns
	if j.alarm != nil {
		j.alarm.Set(time.Duration(waitNs))
	}
}

// hold has what is scheduled until release wake nobody.
func (j *jobs) hold() { j.held = true }

// release wakes a worker for what is the most urgent by now, then or when it is due.
func (j *jobs) release() {
	j.held = false
	j.rouse()
}

// nextSequence keeps those that are equally urgent in order.
func (j *jobs) nextSequence() uint64 {
	j.sequence++
	return j.sequence
}

// urgent is a due time before all others.
const urgent = 0

// next takes the most urgent process that is due, nil if none is, and its work, which is the
// caller's now.
func (t *Table) next() (p *Process, w work) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.jobs
	now := j.now()
	t.chargeRunning(now)
	from, owes := j.first(now)
	if from == nil {
		j.rouse()
		return nil, 0
	}
	pausedNs, delay := &j.pausedNs, t.opts.CPU.Delay
	if owes {
		pausedNs, delay = &j.laterNs, t.opts.CPU.DelayAll
	}
	if wait := delay(budget.Processes); wait > 0 {
		*pausedNs = now + int64(wait)
		j.rouse()
		return nil, 0
	}
	p = heap.Pop(from).(*Process)
	if owes {
		p.turn.tookNs = now
		p.owing = true
		j.owing++
	}
	p.turn = nil
	w, p.work, p.takenDueNs = p.work, 0, p.dueNs
	p.state = jobRunning
	j.rouse() // another worker may take the next one
	return p, w
}

// putBack gives a process the work back that a worker has taken and not begun, as urgent as it was. The table is locked.
func (p *Process) putBack(w work) {
	p.work |= w
	p.dueNs = min(p.dueNs, p.takenDueNs)
}

// done gives a process back, to wait for the work that has come meanwhile.
func (t *Table) done(w *worker, p *Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(w)
	t.jobs.giveBack(p)
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
		heap.Remove(j.of(p), p.index)
		p.state, p.turn = jobIdle, nil
	case jobWaiting:
		p.state = jobIdle // hanging.release takes it out of userLooks.waiting
	}
}
