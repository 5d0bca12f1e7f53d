//go:build linux

package process

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

// Looks at the processes of all users are paid from one budget (Options.CPU). A user may have many
// processes, each with files that take long to read. One who has had more than his part lately comes
// after all others: looks at his processes are taken when there is nothing else to be done, and one
// worker does not take them.

const (
	// One part in turnPart of the CPU time that looks have for themselves is a user's, and what of it
	// was not used for turnSaved.
	turnPart  = 2
	turnSaved = 10 * time.Second
	// turnPiece is what of a look others have to wait for. What it takes beyond that is paid back beside
	// what they take, and nobody who owes anything comes before all of it is.
	turnPiece = 50 * time.Millisecond
	// turnOwed is the most CPU time that a user owes: all looks at his processes that can be late take no more.
	// Each has maxOpening for files, the last of which may take budget.MaxFileTime.
	turnOwed = maxUserLate * (maxOpening + budget.MaxFileTime)
	// meterEvery is how often what runs is charged for what it has taken until then.
	meterEvery = 10 * time.Millisecond
)

// turn is a user's, if less is left of his part than can be saved up. Guarded by Table.mu.
type turn struct {
	paidNs int64 // when the user has the time again that looks at his processes have taken
	tookNs int64 // when one was taken last although the user owed time
	// queue has those that were due while the user owed time.
	queue queue
}

// A meter tells what work on a process has taken of a CPU. Guarded by Table.mu.
type meter struct {
	uid       uint32
	reads     bool
	thread    int
	beganNs   int64 // by the thread's clock
	chargedNs int64 // of what it has taken since
}

// startMeter begins to count what a worker does for its process, on this thread.
func (t *Table) startMeter(w *worker, todo work) {
	t.mu.Lock()
	defer t.mu.Unlock()
	thread := int(w.tid.Load())
	w.meter = meter{uid: w.owner.UID, reads: todo.reads(), thread: thread, beganNs: t.opts.threadTime(thread)}
	t.jobs.running = append(t.jobs.running, &w.meter)
}

// stopMeter charges what was not charged while it ran.
func (t *Table) stopMeter(w *worker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.chargeMeter(&w.meter)
	t.jobs.running = slices.DeleteFunc(t.jobs.running, func(m *meter) bool { return m == &w.meter })
}

// chargeRunning charges what runs for what it has taken until now: who decides what begins next has to know. The
// table is locked.
func (t *Table) chargeRunning(nowNs int64) {
	if nowNs-t.jobs.meteredNs < int64(meterEvery) {
		return
	}
	t.jobs.meteredNs = nowNs
	for _, m := range t.jobs.running {
		t.chargeMeter(m)
	}
}

func (t *Table) chargeMeter(m *meter) {
	if ns := t.opts.threadTime(m.thread) - m.beganNs; ns > m.chargedNs {
		t.charge(m, ns)
	}
}

// charge counts the CPU time that was taken by now. The table is locked.
func (t *Table) charge(m *meter, ns int64) {
	cpu := t.opts.CPU
	before := m.chargedNs
	m.chargedNs = ns
	piece := min(ns, int64(turnPiece)) - min(before, int64(turnPiece))
	ns -= before
	cpu.Spend(budget.Processes, time.Duration(piece))
	cpu.Defer(budget.Processes, time.Duration(ns-piece))
	limit := cpu.Limit() * budget.Processes.Share()
	if limit == 0 || !m.reads || m.uid == nobody {
		return
	}
	uid := m.uid
	turns, now := t.jobs.turns, t.now()
	saved := now - int64(turnSaved)
	u := turns[uid]
	if u == nil {
		maps.DeleteFunc(turns, func(_ uint32, u *turn) bool { return u.paidNs <= saved && len(u.queue) == 0 })
		u = &turn{}
		turns[uid] = u
	}
	price := func(ns int64) int64 { return int64(float64(ns) * turnPart / limit) }
	u.paidNs = min(max(u.paidNs, saved)+price(ns), now+price(int64(turnOwed)))
}

// yield has what is due of users who owe time wait in their own queues.
func (j *jobs) yield(nowNs int64) {
	for len(j.turns) > 0 && len(j.queue) > 0 && j.queue[0].dueNs <= nowNs {
		first := j.queue[0]
		if !first.work.reads() || !j.owes(first.user(), nowNs) {
			return
		}
		heap.Pop(&j.queue)
		u := j.turns[first.user()]
		first.turn = u
		heap.Push(&u.queue, first)
	}
}

// owes reports whether a user owes time.
func (j *jobs) owes(uid uint32, nowNs int64) bool {
	u := j.turns[uid]
	return u != nil && u.paidNs > nowNs
}

// first returns the queue whose first process comes before all others, nil if none is due. owes tells
// that its user owes time: of such users it is the one who has waited for longest.
func (j *jobs) first(nowNs int64) (from *queue, owes bool) {
	j.yield(nowNs)
	if len(j.queue) > 0 && j.queue[0].dueNs <= nowNs {
		from = &j.queue
	}
	var longest *turn
	for _, u := range j.turns {
		switch {
		case len(u.queue) == 0:
		case u.paidNs <= nowNs:
			if from == nil || u.queue[0].before((*from)[0]) {
				from = &u.queue
			}
		case longest == nil || u.tookNs < longest.tookNs:
			longest = u
		}
	}
	if from != nil || longest == nil || j.owing >= j.maxOwing {
		return from, false
	}
	return &longest.queue, true
}

// laterDue is when there is something to be done for users who owe time, or have owed it; noAlarm: there
// is nothing, or it waits for a worker.
func (j *jobs) laterDue() int64 {
	due := int64(noAlarm)
	for _, u := range j.turns {
		if len(u.queue) == 0 {
			continue
		}
		due = min(due, u.paidNs)
		if j.owing < j.maxOwing {
			due = min(due, j.laterNs)
		}
	}
	return due
}

// giveBack notes that a worker has done with a process, or has another one in its place.
func (j *jobs) giveBack(p *Process) {
	if p.owing {
		p.owing = false
		j.owing--
		j.rouse()
	}
}

// yielded is how many wait in the queues of users who owe time.
func (j *jobs) yielded() (n int) {
	for _, u := range j.turns {
		n += len(u.queue)
	}
	return n
}
