//go:build linux && (amd64 || arm64)

package pipeline

import (
	"runtime"
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
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

	threadTime func(tid int) int64 // ns

	mu       sync.Mutex
	spent    map[uint32]time.Duration // lately
	total    time.Duration            // of all users
	halvedNs int64
	// running is what is being done, charged at meteredNs.
	running   map[*nameMeter]struct{}
	meteredNs int64
}

// nameMeter tells what work for a user has taken of a CPU. Guarded by nameShares.mu.
type nameMeter struct {
	uid      uint32
	reserved bool  // it is of the reserve
	thread   int   // that does it
	atNs     int64 // by the thread's clock, when it was charged last
}

// meterEvery is how often what is being done is charged for what it has taken until then.
const meterEvery = 10 * time.Millisecond

func newNameShares(limits *budgets, cpu float64, now func() int64) *nameShares {
	return &nameShares{
		limits:  limits,
		reserve: budget.NewCPU(cpu*budget.Names.Share()*reserveShare, now),
		now:     now,

		threadTime: budget.ThreadTime,
		spent:      map[uint32]time.Duration{},
		running:    map[*nameMeter]struct{}{},
	}
}

// busy reports whether nothing is to be read for a user for now.
func (s *nameShares) busy(uid uint32) bool {
	s.chargeRunning()
	if s.limits.cpu.Left(budget.Names) || !s.hasMost(uid) && s.reserve.Left(budget.Names) {
		return false
	}
	return s.limits.cpu.Delay(budget.Names) > 0 // it is counted
}

// spend does some work for a user and counts its CPU time.
func (s *nameShares) spend(uid uint32, work func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := s.begin(uid, procfs.Thread())
	work()
	s.end(m)
}

// begin begins to count what a thread does for a user.
func (s *nameShares) begin(uid uint32, thread int) *nameMeter {
	m := &nameMeter{uid, s.reserved(uid), thread, s.threadTime(thread)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[m] = struct{}{}
	return m
}

// end charges what was not charged meanwhile.
func (s *nameShares) end(m *nameMeter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meter(m)
	delete(s.running, m)
}

// chargeRunning charges what is being done for what it has taken until now: who decides what begins next has to know.
func (s *nameShares) chargeRunning() {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now-s.meteredNs < int64(meterEvery) {
		return
	}
	s.meteredNs = now
	for m := range s.running {
		s.meter(m)
	}
}

// meter charges what has been taken since the last time. s.mu is held.
func (s *nameShares) meter(m *nameMeter) {
	if ns := s.threadTime(m.thread); ns > m.atNs {
		s.charge(m.uid, time.Duration(ns-m.atNs), m.reserved)
		m.atNs = ns
	}
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

// charge counts what was spent for a user. s.mu is held.
func (s *nameShares) charge(uid uint32, took time.Duration, reserved bool) {
	s.limits.cpu.Spend(budget.Names, took)
	if reserved {
		s.reserve.Spend(budget.Names, took)
	}
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
