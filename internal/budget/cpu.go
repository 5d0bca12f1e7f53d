package budget

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Work is a kind of work in the background.
type Work uint8

// The kinds of work.
const (
	Processes Work = iota // reading processes, their executables and contexts
	Rows                  // building unwind rows
	Names                 // reading names of functions

	NumWork = iota
)

// String returns the name used in metrics.
func (w Work) String() string { return [NumWork]string{"processes", "unwind_rows", "symbols"}[w] }

// Share returns the part of the budget that a kind of work has for itself.
func (w Work) Share() float64 { return shares[w] }

// shares of the budget that each kind of work has for itself. What one does not use is
// for all.
var shares = [NumWork]float64{Processes: 0.5, Rows: 0.25, Names: 0.25}

const (
	// burst is how much of the budget can be saved up.
	burst = time.Second
	// maxDebt is the most CPU time that a kind of work owes. What one piece takes beyond that is
	// forgiven: nothing else would be done for too long.
	maxDebt = time.Minute
	// maxDeferred is the most that it defers, which is more than all pieces take that can run side by side.
	maxDeferred = time.Hour
	// maxDelay is how long who has to wait does so before it asks again: others may
	// have left something meanwhile.
	maxDelay = 100 * time.Millisecond
	// recently is the time over which Load is an average, the latest counting most.
	recently = 10 * time.Second
)

// CPU is CPU time that may be spent each second, as a share of one CPU. Work is not
// interrupted: who has spent more than there was waits the longer before the next piece.
type CPU struct {
	share float64
	now   func() int64 // ns

	spent   [NumWork]atomic.Int64
	delayed [NumWork]atomic.Int64

	mu   sync.Mutex
	atNs int64
	own  [NumWork]float64 // ns; negative: owed
	pool float64          // what others have left
	load float64          // CPU ns a ns, recently
	// deferred is owed as well, and paid with half of what comes in.
	deferred [NumWork]float64

	waits, waitsAll [NumWork]bool
}

// NewCPU returns a budget of so many CPU seconds a second. now returns a monotonic time
// in ns.
func NewCPU(share float64, now func() int64) *CPU {
	c := &CPU{share: share, now: now, atNs: now()}
	for w := range c.own {
		c.own[w] = c.most(Work(w))
	}
	return c
}

// Limit returns how much may be spent, in CPU seconds a second; 0: there is no limit.
func (c *CPU) Limit() float64 {
	if c == nil {
		return 0
	}
	return c.share
}

// most is what can be saved up for a kind of work, in ns.
func (c *CPU) most(w Work) float64 { return c.share * shares[w] * float64(burst) }

// refill gives out what has come in since the last time.
func (c *CPU) refill() {
	now := c.now()
	passed := float64(max(now-c.atNs, 0))
	c.atNs = now
	c.load *= math.Exp(-passed / float64(recently))
	for w := range c.own {
		in := passed * c.share * shares[w]
		paid := min(c.deferred[w], in/2)
		c.deferred[w] -= paid
		c.own[w] += in - paid
		if most := c.most(Work(w)); c.own[w] > most {
			c.pool += c.own[w] - most
			c.own[w] = most
		}
	}
	for w := range c.own {
		if c.own[w] < 0 {
			paid := min(c.pool, -c.own[w])
			c.own[w] += paid
			c.pool -= paid
		}
		paid := min(c.pool, c.deferred[w])
		c.deferred[w] -= paid
		c.pool -= paid
	}
	c.pool = min(c.pool, c.share*float64(burst))
}

// Left reports whether there is time left for a kind of work, for who does something else when there
// is none.
func (c *CPU) Left(w Work) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left(w)
}

func (c *CPU) left(w Work) bool {
	c.refill()
	left := c.own[w] > 0 || c.pool > 0
	if left {
		c.waits[w] = false
	}
	return left
}

// Delay returns how long a kind of work has to wait; 0: not at all. Who waits asks
// again afterwards.
func (c *CPU) Delay(w Work) time.Duration {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left(w) {
		return 0
	}
	if !c.waits[w] { // else it asks again, or another goroutine does
		c.waits[w] = true
		c.delayed[w].Add(1)
	}
	return min(time.Duration(-c.own[w]/(c.share*shares[w]))+time.Millisecond, maxDelay)
}

// DelayAll is Delay for who waits until also what was deferred is paid.
func (c *CPU) DelayAll(w Work) time.Duration {
	delay := c.Delay(w)
	if c == nil || delay > 0 {
		return delay
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deferred[w] == 0 {
		c.waitsAll[w] = false
		return 0
	}
	if !c.waitsAll[w] {
		c.waitsAll[w] = true
		c.delayed[w].Add(1)
	}
	return min(time.Duration(c.deferred[w]/(c.share*shares[w]))+time.Millisecond, maxDelay)
}

// Deferred returns what is owed of what was deferred.
func (c *CPU) Deferred(w Work) time.Duration {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refill()
	return time.Duration(c.deferred[w])
}

// Defer notes CPU time that a kind of work has taken, and that others who do the same have to wait for
// half as much as for what was spent.
func (c *CPU) Defer(w Work, d time.Duration) {
	if c == nil || d <= 0 {
		return
	}
	c.spent[w].Add(int64(d))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refill()
	c.load += float64(d) / float64(recently)
	c.deferred[w] = min(c.deferred[w]+float64(d), float64(maxDeferred))
}

// Spend notes CPU time that a kind of work has taken.
func (c *CPU) Spend(w Work, d time.Duration) {
	if c == nil || d <= 0 {
		return
	}
	c.spent[w].Add(int64(d))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refill()
	c.load += float64(d) / float64(recently)
	c.own[w] -= float64(d)
	if c.own[w] < 0 {
		paid := min(c.pool, -c.own[w])
		c.own[w] += paid
		c.pool -= paid
	}
	c.own[w] = max(c.own[w], -float64(maxDebt))
}

// CPUUse is what has become of a budget.
type CPUUse struct {
	Spent   [NumWork]time.Duration // since NewCPU
	Delayed [NumWork]int64         // times that work had to wait
	Load    float64                // part of the budget that was used in the last seconds; above 1 for a while after saving
}

// Use returns what has been spent.
func (c *CPU) Use() (u CPUUse) {
	if c == nil {
		return u
	}
	for w := range u.Spent {
		u.Spent[w] = time.Duration(c.spent[w].Load())
		u.Delayed[w] = c.delayed[w].Load()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refill()
	u.Load = c.load / c.share
	return u
}
