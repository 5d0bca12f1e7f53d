package symbol

import "time"

// lineWaitShare of what is waited for the lines of one Go program is for one user: who is first leaves the rest to
// others who run the same program.
const lineWaitShare = 2

// lineTurns is what waiting for lines of a Go program has taken in a batch, and through whom the program cannot be
// read in it. Guarded by Cache.mu.
type lineTurns struct {
	batch   uint64
	spent   time.Duration
	spentOf map[uint32]time.Duration
	faulty  map[place]struct{}
}

// begin begins a batch, if it is another one.
func (t *lineTurns) begin(batch uint64) {
	if t.batch != batch {
		*t = lineTurns{batch: batch}
	}
}

// left returns how long a lookup for an owner may wait, of so much for the program.
func (t *lineTurns) left(of Owner, all time.Duration) time.Duration {
	if _, faulty := t.faulty[of.place()]; faulty {
		return 0
	}
	return min(all-t.spent, all/lineWaitShare-t.spentOf[of.UID])
}

// spend notes that a lookup for a user has waited.
func (t *lineTurns) spend(uid uint32, waited time.Duration) {
	if t.spentOf == nil {
		t.spentOf = map[uint32]time.Duration{}
	}
	t.spent += waited
	t.spentOf[uid] += waited
}

// fail notes that the program cannot be read through an owner's processes: not at once again.
func (t *lineTurns) fail(of place) {
	if t.faulty == nil || len(t.faulty) == maxRefusals {
		t.faulty = map[place]struct{}{}
	}
	t.faulty[of] = struct{}{}
}
