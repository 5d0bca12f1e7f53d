package symbol

import (
	"sync"
	"time"
)

// What is read for one user computes one after the other: what a read takes is known when it has ended, or when
// somebody asks, and each begins only while there is CPU time left. A read that waits in the kernel, for a disk or for
// a file server that never answers, keeps no other one of its user from its turn, and waits for the next turn itself
// when it goes on.

// turnPoll is how often a read looks whether it is its turn.
const turnPoll = 10 * time.Millisecond

// turn waits until a read may compute, which is at once if it is its turn already. The error is errBusy if there is no
// CPU time left for its user then, or errClosed: the read ends. The lock that guards the reading must not be held.
func (r *reading) turn(one *read, mu *sync.Mutex) error {
	for {
		if r.closed.Load() {
			return errClosed
		}
		mu.Lock()
		mine, begins := r.take(one)
		mu.Unlock()
		switch {
		case !mine:
			time.Sleep(turnPoll)
		case begins && r.opts.busy(one.owner):
			return errBusy
		default:
			return nil
		}
	}
}

// take reports whether it is a read's turn, and whether that begins now.
func (r *reading) take(one *read) (mine, begins bool) {
	computes := r.turns[one.owner.UID]
	if computes == one {
		return true, false
	}
	if computes != nil && !r.opts.blocked(int(computes.thread.Load())) {
		return false, false
	}
	r.turns[one.owner.UID] = one
	return true, true
}

// giveTurn ends the turn of a read.
func (r *reading) giveTurn(one *read) {
	if r.turns[one.owner.UID] == one {
		delete(r.turns, one.owner.UID)
	}
}
