package budget

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type clock struct{ ns int64 }

func (c *clock) now() int64 { return c.ns }

func (c *clock) pass(d time.Duration) { c.ns += int64(d) }

// work spends as much as it may in pieces, for a time, and returns how much that was.
func work(c *CPU, clk *clock, w Work, piece, d time.Duration) (spent time.Duration) {
	for end := clk.ns + int64(d); clk.ns < end; {
		if delay := c.Delay(w); delay > 0 {
			clk.pass(delay)
			continue
		}
		c.Spend(w, piece)
		spent += piece
		clk.pass(piece)
	}
	return spent
}

// One kind of work alone may have all of the budget.
func TestCPUAlone(t *testing.T) {
	for w := range Work(NumWork) {
		clk := &clock{}
		c := NewCPU(0.2, clk.now)
		work(c, clk, w, 10*time.Millisecond, 20*time.Second) // what was saved up
		spent := work(c, clk, w, 10*time.Millisecond, 100*time.Second)
		require.InDelta(t, 20, spent.Seconds(), 1, "%s", w)
		require.InDelta(t, 1, c.Use().Load, 0.2)
		require.NotZero(t, c.Use().Delayed[w])
	}
}

// Large pieces are paid back: more than the budget is not spent in the long run.
func TestCPULargePieces(t *testing.T) {
	clk := &clock{}
	c := NewCPU(0.1, clk.now)
	spent := work(c, clk, Rows, 5*time.Second, 1000*time.Second)
	require.LessOrEqual(t, spent, 110*time.Second)
	require.GreaterOrEqual(t, spent, 90*time.Second)
}

// Work waits for what a very long piece has taken, up to a minute of CPU time.
func TestCPUDebt(t *testing.T) {
	for _, piece := range []time.Duration{maxDebt, time.Hour} {
		clk := &clock{}
		c := NewCPU(1, clk.now)
		c.Spend(Rows, piece)
		c.Spend(Rows, piece)
		for c.Delay(Rows) > 0 {
			clk.pass(time.Second)
		}
		// A quarter of a CPU of its own, and what the others leave.
		require.InDelta(t, maxDebt.Seconds(), time.Duration(clk.ns).Seconds(), 4, piece)
	}
}

// However much one kind wants, the others have their share.
func TestCPUShares(t *testing.T) {
	clk := &clock{}
	c := NewCPU(0.4, clk.now)
	var spent [NumWork]time.Duration
	const piece = 10 * time.Millisecond
	for end := int64(200 * time.Second); clk.ns < end; clk.pass(time.Millisecond) {
		for w := range Work(NumWork) {
			for c.Delay(w) == 0 {
				c.Spend(w, piece)
				spent[w] += piece
			}
		}
	}
	for w, d := range spent {
		require.InDelta(t, 200*0.4*shares[w], d.Seconds(), 2, "%s", Work(w))
	}
	require.Equal(t, spent, c.Use().Spent)
}

// What was not used is saved up for a burst, but not without bound.
func TestCPUBurst(t *testing.T) {
	clk := &clock{}
	c := NewCPU(0.5, clk.now)
	clk.pass(time.Hour)
	spent := time.Duration(0)
	for c.Delay(Processes) == 0 {
		c.Spend(Processes, 10*time.Millisecond)
		spent += 10 * time.Millisecond
	}
	require.InDelta(t, 0.75, spent.Seconds(), 0.02, "its own share and what others have left")
	clk.pass(time.Minute)
	require.Less(t, c.Use().Load, 0.01)
}

// What is deferred is paid back in the long run, and others go on meanwhile with at least half of what
// they would have.
func TestCPUDeferred(t *testing.T) {
	clk := &clock{}
	c := NewCPU(0.4, clk.now)
	c.Defer(Processes, 20*time.Second)
	spent := work(c, clk, Processes, 10*time.Millisecond, 50*time.Second)
	require.InDelta(t, 11, spent.Seconds(), 1, "half of all")
	clk.pass(time.Second)
	require.Zero(t, c.Delay(Processes))
	require.NotZero(t, c.DelayAll(Processes))
	before := c.Use().Delayed[Processes]
	require.NotZero(t, c.DelayAll(Processes))
	require.Equal(t, before, c.Use().Delayed[Processes], "counted once")

	// Who owes and who does not, and both want all that there is.
	clk = &clock{}
	c = NewCPU(0.4, clk.now)
	var all time.Duration
	for end := int64(1000 * time.Second); clk.ns < end; clk.pass(10 * time.Millisecond) {
		if c.DelayAll(Processes) == 0 {
			c.Defer(Processes, 5*time.Second)
			all += 5 * time.Second
		}
		if c.Delay(Processes) == 0 {
			c.Spend(Processes, time.Millisecond)
			all += time.Millisecond
		}
	}
	require.InDelta(t, 400, all.Seconds(), 10)
	require.InDelta(t, all.Seconds(), c.Use().Spent[Processes].Seconds(), 0.1)
}

// What pieces take that run side by side is deferred in whole.
func TestCPUDeferredPieces(t *testing.T) {
	clk := &clock{}
	c := NewCPU(1, clk.now)
	const pieces, piece = 10, 20 * time.Second
	for range pieces {
		c.Defer(Processes, piece)
	}
	for c.DelayAll(Processes) > 0 {
		clk.pass(time.Second)
	}
	require.InDelta(t, (pieces * piece).Seconds(), time.Duration(clk.ns).Seconds(), 3, "all that comes in, as others leave theirs")
}

// Waiting is counted when it begins, however often who waits asks.
func TestCPUDelayed(t *testing.T) {
	clk := &clock{}
	c := NewCPU(0.5, clk.now)
	for n := range int64(3) {
		c.Spend(Rows, 10*time.Second)
		for range 5 {
			require.NotZero(t, c.Delay(Rows))
		}
		require.Equal(t, n+1, c.Use().Delayed[Rows])
		clk.pass(time.Hour)
		require.Zero(t, c.Delay(Rows))
	}
}

// A clock that goes back takes nothing away.
func TestCPUClockGoesBack(t *testing.T) {
	clk := &clock{ns: int64(time.Hour)}
	c := NewCPU(0.5, clk.now)
	clk.pass(-time.Minute)
	require.Zero(t, c.Delay(Processes))
}

func TestNil(t *testing.T) {
	var c *CPU
	c.Spend(Rows, time.Second)
	c.Defer(Rows, time.Second)
	require.Zero(t, c.Delay(Rows)+c.DelayAll(Rows))
	require.Zero(t, c.Use())
	var m *Memory
	m.Add(OfFiles, 1)
	m.Set(OfFiles, 1)
	require.Zero(t, m.Used()+m.Part(OfFiles)+m.Limit())
	require.Zero(t, m.Excess())
	require.Equal(t, Relaxed, m.Pressure())
	require.Equal(t, Relaxed, m.PressureBeside(OfOutput))
}

func TestMemory(t *testing.T) {
	m := NewMemory(800)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				m.Add(OfProcesses, 3)
				m.Add(OfProcesses, -3)
			}
		})
	}
	all.Go(func() {
		for i := range 1000 {
			m.Set(OfSymbols, i)
		}
	})
	all.Wait()
	require.EqualValues(t, 999, m.Used())
	for _, step := range []struct {
		symbols  int
		pressure Pressure
		excess   int
	}{{0, Relaxed, 0}, {599, Relaxed, 0}, {600, Tight, 0}, {650, Tight, 50}, {700, Scarce, 100}, {800, Full, 200}} {
		m.Set(OfSymbols, step.symbols)
		require.Equal(t, step.pressure, m.Pressure(), "%d", step.symbols)
		require.Equal(t, step.excess, m.Excess())
	}
	m.Set(OfSymbols, 0)
	m.Add(OfBatches, 300)
	require.EqualValues(t, 600, m.Part(OfBatches), "the heap grows to twice what is in use")
	require.Equal(t, Tight, m.Pressure())
	m.Add(OfOutput, 50)
	require.Equal(t, Scarce, m.Pressure())
	require.Equal(t, Tight, m.PressureBeside(OfOutput))
	require.Equal(t, Relaxed, m.PressureBeside(OfBatches))
}
