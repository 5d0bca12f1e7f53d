//go:build linux

package process

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// When the table is full, a process gets the place of one that loses less without it, so that nobody
// can keep the processes of others out by having many: of one that has ended without a sample; of one
// that was never sampled and has no label sources, which enters again with its first sample; and of
// any that a user has beside his share, which is half of the table, and, when processes have used up
// their memory, half of that. Which these are is searched for
// when there is no room, so that it costs nothing while there is some.

// spareGap is the least time between two searches for processes that can be spared.
const spareGap = time.Second

// sampledParts: so small a part of the table may be let go of after one search for the only reason that
// it is beside a user's share, though it is sampled. More than there is room for would go and come all
// the time.
const sampledParts = 64

// loss says what is lost with a process.
type loss uint8

const (
	lossNone   loss = iota // never sampled, and without label sources
	lossLabels             // never sampled: its first samples have no labels
	lossIdle               // sampled, but not lately: likewise
	lossNames              // sampled: of what was sampled, names may be missing
)

// spares are the processes that can be let go, those whose loss is the least first. They may have gone
// since, or be worth more by now. Guarded by Table.mu.
type spares struct {
	found    []spare
	searchNs int64 // when they are searched for again
}

type spare struct {
	handle uint64
	uid    uint32
	loss   loss
	bytes  int
	places int // in the table: one or none
	others int // processes of the same user, itself included
}

// holding is what a user's processes take.
type holding struct{ processes, bytes int }

func (h holding) with(bytes, processes int) holding {
	return holding{h.processes + processes, h.bytes + bytes}
}

func (h holding) exceeds(share holding) bool {
	return h.processes > share.processes || h.bytes > share.bytes
}

// full reports whether there is no room for another process.
func (t *Table) full() bool {
	return len(t.byID) >= t.opts.MaxProcesses || t.used(fullParts, budget.Full)
}

// makeRoom lets go of a process, if there is one, for another one, which is sampled or not. The table
// is locked.
func (t *Table) makeRoom(sampled bool) {
	if t.letGoAnyEnded() || t.letGoSpare(sampled) {
		t.counts.refused.Add(1)
	}
}

// refuse counts a process that finds no room, and has what it has begun with taken back: else a user who starts many
// that sleep fills what the sampling programs know of processes, of which the table would never tell. Of one that is
// sampled that was done when it began, or left the table. The table is locked.
func (t *Table) refuse(id record.ProcessID, pid int, sampled bool) {
	t.counts.refused.Add(1)
	if !sampled {
		t.forgetRunning(id, pid)
	}
}

func (t *Table) letGoAnyEnded() bool {
	for len(t.ended) > 0 {
		if t.letGoEnded() {
			return true
		}
	}
	return false
}

// letGoSpare lets go of what can be spared; for a process that is not sampled of nothing that was.
func (t *Table) letGoSpare(sampled bool) bool {
	s := &t.spares
	if now := t.now(); now >= s.searchNs {
		s.searchNs = now + int64(spareGap)
		s.found = t.findSpares()
	}
	for len(s.found) > 0 {
		first := s.found[0]
		if first.loss >= lossIdle && !sampled {
			return false
		}
		s.found = s.found[1:]
		if p := t.byHandle[first.handle]; p != nil && t.sparable(p) && p.loss() <= first.loss {
			t.expel(p)
			return true
		}
	}
	return false
}

// findSpares returns the processes that can be spared: for the same loss first those of who has the
// most, and of these the oldest.
func (t *Table) findSpares() []spare {
	of, bytes := map[uint32]holding{}, 0
	for _, p := range t.byHandle {
		of[p.user()] = of[p.user()].with(p.bytes, t.places(p))
		bytes += p.bytes
	}
	share := holding{t.opts.MaxProcesses / 2, math.MaxInt}
	if t.held(fullParts) {
		share.bytes = bytes / 2
	}
	var all []spare
	for _, p := range t.byHandle {
		s := spare{p.handle, p.user(), p.loss(), p.bytes, t.places(p), of[p.user()].processes}
		if t.sparable(p) && (s.loss == lossNone || of[s.uid].exceeds(share)) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b spare) int {
		return cmp.Or(cmp.Compare(a.loss, b.loss), cmp.Compare(b.others, a.others), cmp.Compare(a.handle, b.handle))
	})
	sampled := max(t.opts.MaxProcesses/sampledParts, 1)
	return slices.DeleteFunc(all, func(s spare) bool {
		if s.loss > lossNone && !of[s.uid].exceeds(share) {
			return true // what goes before it is enough
		}
		if s.loss == lossNames {
			if sampled == 0 {
				return true
			}
			sampled--
		}
		of[s.uid] = of[s.uid].with(-s.bytes, -s.places)
		return false
	})
}

// places returns how many places a process has in the table: what samples hold of one that has left it
// takes memory only.
func (t *Table) places(p *Process) int {
	if t.has(p) {
		return 1
	}
	return 0
}

// sparable reports whether a process takes of what there is too little of, and nothing waits for it: no
// worker, and no time until which it is to be left alone.
func (t *Table) sparable(p *Process) bool {
	return (t.has(p) || t.held(fullParts)) && p.state != jobRunning && p.quarantinedNs <= t.now()
}

func (p *Process) loss() loss {
	switch {
	case p.sampled.Load() && (p.exited || p.lately.Load()):
		return lossNames
	case p.sampled.Load():
		return lossIdle
	case p.inherited > 0 || p.Info().activeSources() > 0:
		return lossLabels
	}
	return lossNone
}

// user is whose process it is, by what has told last: /proc before a look, a sample, or whose process has begun it;
// nobody: nothing has told yet.
func (p *Process) user() uint32 { return p.uid.Load() }

// setUser notes whose process it is, if that is known. One that waits in another user's queue, or for looks at another
// user's, does so no more. The table is locked.
func (t *Table) setUser(p *Process, uid uint32) {
	if uid == nobody || uid == p.user() {
		return
	}
	before := p.user()
	p.uid.Store(uid)
	t.account(p)
	switch {
	case p.turn != nil:
		heap.Remove(&p.turn.queue, p.index)
		t.jobs.enqueue(p)
	case p.state == jobWaiting:
		u := t.hanging.of(before)
		u.waiting = slices.DeleteFunc(u.waiting, func(other *Process) bool { return other == p })
		t.hanging.settle(before)
		t.jobs.enqueue(p)
	}
}

// expel lets go of a process that may go on to run. No worker has it. What was published of it is
// taken back here and not by a worker, who might do so when it has entered again. Also what is held of
// it goes, since it may be memory that there is too little of.
func (t *Table) expel(p *Process) {
	if !p.exited {
		t.withdraw(p)
		t.forgetRunning(p.id, p.pid)
	}
	t.letGo(p)
	t.forgetAll(p)
}
