//go:build linux

package process

import (
	"container/heap"
	"maps"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

// Looks at the processes of all users are paid from one budget (Options.CPU). A user may have many
// processes, each with files that take long to read. One who has had more than his part lately comes
// after all others: looks at his processes are taken when there is nothing else to be done.

const (
	// One part in turnPart of the CPU time that looks have for themselves is a user's, and what of it
	// was not used for turnSaved.
	turnPart  = 2
	turnSaved = 10 * time.Second
	// turnPiece is what of a look others have to wait for. What it takes beyond that is paid back beside
	// what they take, and nobody who owes anything comes before all of it is.
	turnPiece = 50 * time.Millisecond
)

// turns are when users have the CPU time again that looks at their processes have taken; those of whom
// less than turnSaved is missing need not be there. Guarded by Table.mu.
type turns map[uint32]int64

// charge counts CPU time that work on a process has taken.
func (t *Table) charge(p *Process, w work, ns int64) {
	cpu := t.opts.CPU
	piece := min(ns, int64(turnPiece))
	cpu.Spend(budget.Processes, time.Duration(piece))
	cpu.Defer(budget.Processes, time.Duration(ns-piece))
	limit := cpu.Limit() * budget.Processes.Share()
	if limit == 0 || !w.reads() {
		return
	}
	uid := p.worker().owner.UID
	t.mu.Lock()
	defer t.mu.Unlock()
	saved := t.now() - int64(turnSaved)
	if _, ok := t.turns[uid]; !ok {
		maps.DeleteFunc(t.turns, func(_ uint32, paidNs int64) bool { return paidNs <= saved })
	}
	t.turns[uid] = max(t.turns[uid], saved) + int64(float64(ns)*turnPart/limit)
}

// owes reports whether a process waits for a look whose user has had more than his part. Whose a
// process is that was not looked at yet says what it was before it has executed what it runs.
func (t *Table) owes(p *Process, nowNs int64) bool {
	if len(t.turns) == 0 || !p.work.reads() {
		return false
	}
	uid := p.user()
	if uid == nobody {
		uid = p.beganAs
	}
	return uid != nobody && t.turns[uid] > nowNs
}

// takeTurns moves what is due between the queue and later, as users owe time and have paid it.
func (t *Table) takeTurns(nowNs int64) {
	j := t.jobs
	for len(j.later) > 0 && !t.owes(j.later[0], nowNs) {
		p := heap.Pop(&j.later).(*Process)
		p.later = false
		heap.Push(&j.queue, p)
	}
	for len(j.queue) > 0 && j.queue[0].dueNs <= nowNs && t.owes(j.queue[0], nowNs) {
		p := heap.Pop(&j.queue).(*Process)
		p.later = true
		heap.Push(&j.later, p)
	}
}
