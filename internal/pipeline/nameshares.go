//go:build linux && (amd64 || arm64)

package pipeline

import (
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

const (
	// reserveShare of the CPU time for names is what users may go on with who have spent little, while
	// that for all is used up.
	reserveShare = 0.5
	// namesHalved is in what time half of what was spent for a user is forgotten, minNames is what is
	// forgotten in whole.
	namesHalved = int64(time.Minute)
	minNames    = time.Millisecond
)

// nameShares are what reading names takes for each user: who has many large files does not hold up
// others. While the time for names is used up, who had more than half of what was spent lately waits.
// The others have a reserve, which they share. What they take of it counts like all, so that in the end
// no more is spent.
type nameShares struct {
	limits  *budgets
	reserve *budget.CPU
	now     func() int64 // ns

	mu       sync.Mutex
	spent    map[uint32]time.Duration // lately
	total    time.Duration            // of all users
	halvedNs int64
}

func newNameShares(limits *budgets, cpu float64, now func() int64) *nameShares {
	return &nameShares{
		limits:  limits,
		reserve: budget.NewCPU(cpu*budget.Names.Share()*reserveShare, now),
		now:     now,
		spent:   map[uint32]time.Duration{},
	}
}

// busy reports whether nothing is to be read for a user for now.
func (s *nameShares) busy(uid uint32) bool {
	if s.limits.cpu.Left(budget.Names) || !s.hasMost(uid) && s.reserve.Left(budget.Names) {
		return false
	}
	return s.limits.cpu.Delay(budget.Names) > 0 // it is counted
}

// spend does some work for a user and counts its CPU time.
func (s *nameShares) spend(uid uint32, work func()) {
	reserved := s.reserved(uid)
	s.charge(uid, s.limits.spend(budget.Names, work), reserved)
}

// reserved reports whether what is done for a user now is of the reserve.
func (s *nameShares) reserved(uid uint32) bool {
	return !s.limits.cpu.Left(budget.Names) && !s.hasMost(uid)
}

// hasMost reports whether a user had more than half of what was spent lately.
func (s *nameShares) hasMost(uid uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halve()
	return 2*s.spent[uid] > s.total
}

// charge counts what was spent for a user.
func (s *nameShares) charge(uid uint32, took time.Duration, reserved bool) {
	if reserved {
		s.reserve.Spend(budget.Names, took)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halve()
	s.spent[uid] += took
	s.total += took
}

// halve forgets what was spent long ago.
func (s *nameShares) halve() {
	now := s.now()
	for ; now-s.halvedNs >= namesHalved && len(s.spent) > 0; s.halvedNs += namesHalved {
		s.total = 0
		for uid, spent := range s.spent {
			if spent < minNames {
				delete(s.spent, uid)
				continue
			}
			s.spent[uid] = spent / 2
			s.total += spent / 2
		}
	}
	if len(s.spent) == 0 {
		s.halvedNs, s.total = now, 0
	}
}
