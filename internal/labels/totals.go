package labels

import "sync/atomic"

// totals is what is counted of a user id, of all its containers. It outlives their slots, so that nothing that was
// counted is ever less.
type totals struct {
	overflow             [NumBudgets]atomic.Uint64
	refused, stringified atomic.Uint64
	reported             atomic.Uint64 // conflicts that were, or would have been
}

func (t *totals) count(of *tally) {
	if of.overflowed {
		t.overflow[of.overflow].Add(1)
	}
	t.refused.Add(uint64(of.refused))
	t.stringified.Add(uint64(of.stringified))
}

// report returns the number of a conflict that is to be reported, from 1 on; 0 if there were enough.
func (t *totals) report() uint64 {
	n := t.reported.Add(1)
	if n > MaxConflicts {
		return 0
	}
	return n
}

// totalsOf returns the totals of a user id: the first Budgets.Users have some of their own, for good.
func (r *Registry) totalsOf(uid uint32) *totals {
	t := r.totals[uid]
	switch {
	case t != nil:
		return t
	case len(r.totals) >= r.opts.Budgets.Users:
		return r.rest
	}
	t = &totals{}
	r.totals[uid] = t
	return t
}

// UserStats is what was counted of a user id.
type UserStats struct {
	UID uint32
	// Others are the users beyond Budgets.Users, with those whose user ids came after as many others, though they
	// may have a slot by now.
	Others      bool
	Slots       int                // in use: more than one where users are told apart by container; for tests
	Overflow    [NumBudgets]uint64 // samples whose labels a budget had no room for
	Refused     uint64             // labels of samples that were left out because of their type
	Stringified uint64             // labels of samples that were made text because of it
	// Used of each budget: of those of an interval in the last one, of the Channel and slot that
	// took most.
	Used [NumBudgets]int
}

// any reports whether anything was counted. Labels may have been refused before any of them took anything.
func (s *UserStats) any() bool {
	return s.Used[BudgetKeys] > 0 || s.Overflow != [NumBudgets]uint64{} || s.Refused > 0 || s.Stringified > 0
}

func (s *UserStats) read(t *totals) {
	for b := range s.Overflow {
		s.Overflow[b] = t.overflow[b].Load()
	}
	s.Refused, s.Stringified = t.refused.Load(), t.stringified.Load()
}

// Users calls visit for each user id that has totals of its own, in no order, and for the others, if there are any.
func (r *Registry) Users(visit func(*UserStats)) {
	for _, s := range r.userStats() {
		if !s.Others || s.any() {
			visit(s)
		}
	}
}

func (r *Registry) userStats() map[*totals]*UserStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := map[*totals]*UserStats{r.rest: {Others: true}}
	for uid, t := range r.totals {
		stats[t] = &UserStats{UID: uid}
	}
	for t, s := range stats {
		s.read(t)
	}
	for _, u := range r.users {
		stats[u.totals].Slots++
		u.mostUsed(&stats[u.totals].Used)
	}
	r.others.mostUsed(&stats[r.rest].Used)
	return stats
}
