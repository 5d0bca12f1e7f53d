//go:build linux

package process

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A turnsTest has looks take CPU time, out of a budget of a tenth of a CPU.
type turnsTest struct {
	*fake
	cpu   *budget.CPU
	costs func(*Process) time.Duration
	spent time.Duration
}

func newTurnsTest(t *testing.T, costs func(*Process) time.Duration) *turnsTest {
	f := &turnsTest{costs: costs}
	f.cpu = budget.NewCPU(0.1, func() int64 {
		if f.fake == nil {
			return 1e9
		}
		return f.clock.Load()
	})
	f.fake = newFake(t, func(o *Options) {
		o.CPU = f.cpu
		o.threadTime = func(tid int) int64 {
			if tid == 0 {
				return 0 // of the fake's worker: the test says what looks take
			}
			return budget.ThreadTime(tid)
		}
	})
	f.advance(int64(2 * turnSaved))
	return f
}

// start has a process of a user begin, which another one starts, or which nothing is known of before.
func (f *turnsTest) start(pid int, uid string, by *Process) *Process {
	id := record.ProcessID{TGID: uint32(pid), StartNs: 5e9}
	f.image(pid, 500, "/bin/one")
	f.write(pid, "status", "Uid:\t"+uid+"\t"+uid+"\t"+uid+"\t"+uid+"\n")
	if by != nil {
		f.HandleEvent(record.Event{Kind: record.EventFork, Process: id, Parent: by.id, PID: pid, TimeNs: uint64(f.now())})
		id.ExecID++
	}
	f.HandleEvent(record.Event{Kind: record.EventExec, Process: id, PID: pid, TimeNs: uint64(f.now())})
	return f.process(id)
}

// step does what a worker would, and returns what it looked at, nil if it had to wait.
func (f *turnsTest) step() *Process {
	p, w := f.next()
	if p == nil {
		f.advance(max(f.jobs.alarmNs-f.clock.Load(), 1))
		return nil
	}
	cost := f.costs(p)
	if !f.begin(&f.worker, p, w) { // its user owes time, which was not known
		return nil
	}
	f.run(p, w, &f.scratch)
	f.pay(p, w, cost)
	f.done(p)
	f.spent += cost
	f.advance(int64(cost))
	return p
}

// pay charges what work on a process has taken.
func (f *turnsTest) pay(p *Process, w work, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.charge(&meter{uid: p.worker().owner.UID, reads: w.reads()}, int64(took))
}

// await returns how long it takes until a process was looked at.
func (f *turnsTest) await(p *Process) time.Duration {
	began := f.clock.Load()
	for !p.Info().Loaded {
		f.step()
	}
	return time.Duration(f.clock.Load() - began)
}

// A user with many processes, of which there is always something to read, does not hold up another's.
func TestLooksOfTwoUsers(t *testing.T) {
	f := newTurnsTest(t, func(*Process) time.Duration { return 10 * time.Millisecond })
	many := map[*Process]bool{}
	for pid := 1; pid <= 200; pid++ {
		many[f.start(pid, "1000", nil)] = true
	}
	again := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for p := range many {
			f.jobs.schedule(p, workReread, f.now())
		}
	}
	for range 2000 {
		f.step()
		again()
	}
	for pid := 1001; pid <= 1005; pid++ {
		again()
		require.Less(t, f.await(f.start(pid, "2000", nil)), time.Second)
	}
	require.NotZero(t, f.jobs.yielded())
	require.EqualValues(t, f.jobs.yielded(), f.Stats().Due)

	// It is the only one again: all of the time is his.
	before, began := f.spent, f.clock.Load()
	for f.clock.Load() < began+int64(100*time.Second) {
		f.step()
		again()
	}
	require.InDelta(t, 10, (f.spent - before).Seconds(), 1)
}

// A look that takes seconds holds up others for a moment, and those of the same user until it is paid.
func TestLookTakesSeconds(t *testing.T) {
	const large = 5 * time.Second
	f := newTurnsTest(t, func(p *Process) time.Duration {
		if p.pid < 1000 || p.pid >= 10_000 {
			return large
		}
		return time.Millisecond
	})
	first := f.start(1, "1000", nil)
	f.await(first)
	second := f.start(2, "1000", first)
	for pid := 1001; pid <= 1010; pid++ {
		require.Less(t, f.await(f.start(pid, "2000", nil)), time.Second)
	}
	require.False(t, second.Info().Loaded)
	require.InDelta(t, large.Seconds()/0.1, f.await(second).Seconds(), 15)

	// In the long run it is not more than the budget, whatever there is to look at.
	began, before := f.clock.Load(), f.spent
	for pid := 10_000; f.clock.Load() < began+int64(1000*time.Second); pid++ {
		f.start(pid, "1000", first)
		for range 100 {
			f.step()
		}
	}
	require.InDelta(t, 100, (f.spent - before).Seconds(), 2*large.Seconds())
}

// Who has paid does not wait for one who owes much, whose process is more urgent.
func TestTurnsAreEachUsersOwn(t *testing.T) {
	f := newTurnsTest(t, func(p *Process) time.Duration {
		if p.pid < 1000 {
			return 5 * time.Second
		}
		return time.Millisecond
	})
	first := f.start(1, "1000", nil)
	f.await(first)
	other := f.start(1001, "2000", nil)
	f.await(other)
	f.pay(other, workReread, 275*time.Millisecond) // 25 ms more than is saved up: a second
	urgentOne := f.start(2, "1000", first)
	f.Lookup(urgentOne.id, 2, 1000, nil)
	f.mu.Lock()
	f.jobs.schedule(other, workReread, f.now())
	f.mu.Unlock()
	before, began := f.Stats().Rereads, f.now()
	for f.Stats().Rereads == before {
		f.step()
	}
	require.InDelta(t, 1, float64(f.now()-began)/1e9, 0.5)
	require.False(t, urgentOne.Info().Loaded)
}

// One worker is left to who owes nothing.
func TestTurnsLeaveAWorker(t *testing.T) {
	f := newTurnsTest(t, func(*Process) time.Duration { return time.Millisecond })
	first := f.start(1, "1000", nil)
	f.await(first)
	f.mu.Lock()
	f.jobs.turns[1000].paidNs = f.now() + int64(time.Hour)
	f.mu.Unlock()
	f.start(2, "1000", first)
	f.start(3, "1000", first)
	f.advance(int64(time.Second))
	second, w := f.next()
	require.EqualValues(t, 1000, second.user())
	require.True(t, f.begin(&f.worker, second, w))
	other, _ := f.next()
	require.Nil(t, other)
	require.Greater(t, f.jobs.alarmNs, f.now()+int64(time.Minute), "until then")
	require.NotNil(t, f.start(1001, "2000", nil))
	f.advance(int64(time.Second))
	other, w = f.next()
	require.Equal(t, 1001, other.pid)
	require.True(t, f.begin(&worker{alarm: func(time.Duration) {}}, other, w))

	f.done(second)
	third, _ := f.next()
	require.EqualValues(t, 1000, third.user())
	require.Equal(t, 1, f.jobs.owing)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs.giveBack(third)
	require.Zero(t, f.jobs.owing)
}

// Of several who owe time, each has its turn.
func TestTurnsOfThoseWhoOwe(t *testing.T) {
	looks := map[uint32]int{}
	f := newTurnsTest(t, func(p *Process) time.Duration {
		looks[p.user()]++
		return 10 * time.Millisecond
	})
	processes := map[string][]*Process{}
	for pid := 1; pid <= 60; pid++ {
		uid := "1000"
		if pid > 50 {
			uid = "2000"
		}
		processes[uid] = append(processes[uid], f.start(pid, uid, nil))
	}
	for range 3000 {
		f.step()
		f.mu.Lock()
		for _, of := range processes {
			for _, p := range of {
				f.jobs.schedule(p, workReread, f.now())
			}
		}
		f.mu.Unlock()
	}
	require.InDelta(t, 1, float64(looks[1000])/float64(looks[2000]), 0.2)
}

// A process that was not looked at is that of who has started it, however many are between.
func TestTurnsOfDescendants(t *testing.T) {
	f := newTurnsTest(t, func(*Process) time.Duration { return time.Millisecond })
	first := f.start(1, "1000", nil)
	f.await(first)
	by := first
	for pid := 2; pid <= 5; pid++ {
		by = f.start(pid, "1000", by)
		require.False(t, by.Info().Loaded)
		require.EqualValues(t, 1000, by.user())
	}
	require.EqualValues(t, nobody, f.start(6, "1000", nil).user())

	// A sample that is faster than the events says whose it is, also of what it begins.
	id := record.ProcessID{TGID: 7, StartNs: 5e9}
	sampled := f.Lookup(id, 7, 1000, nil)
	require.EqualValues(t, 1000, sampled.user())
	f.HandleEvent(record.Event{Kind: record.EventFork, Process: id, Parent: by.id, PID: 7, TimeNs: uint64(f.now())})
	require.EqualValues(t, 1000, f.start(7, "1000", nil).user())
	require.EqualValues(t, 1000, f.start(8, "1000", sampled).user())

	// What one owes is bounded.
	f.pay(first, workReread, time.Hour)
	require.InDelta(t, f.now()+int64(turnOwed)*turnPart*20, f.jobs.turns[1000].paidNs, 1e6)
}

// A look is charged while it runs: no other one of its user begins beside it while it computes, and one does while it
// only waits. What is charged in parts is no more than in one.
func TestTurnsBesideARunningLook(t *testing.T) {
	for _, step := range []struct {
		took time.Duration
		next bool
	}{{0, true}, {20 * time.Millisecond, true}, {5 * time.Second, false}} {
		f := newTurnsTest(t, func(*Process) time.Duration { return time.Millisecond })
		const thread = 77
		var took time.Duration
		f.opts.threadTime = func(tid int) int64 {
			require.Equal(t, thread, tid)
			return int64(time.Hour + took)
		}
		f.worker.tid.Store(thread)
		first := f.start(1, "1000", nil)
		f.await(first)
		second := f.start(2, "1000", first)
		third := f.start(3, "1000", first)
		f.advance(int64(2 * turnSaved))
		before := f.cpu.Use().Spent[budget.Processes]
		p, todo := f.next()
		require.Same(t, second, p)
		w := &worker{alarm: func(time.Duration) {}}
		w.tid.Store(thread)
		require.True(t, f.begin(w, p, todo))
		f.startMeter(w, todo)
		for range 10 {
			took += step.took / 10
			f.advance(int64(meterEvery))
			f.mu.Lock()
			f.chargeRunning(f.now())
			f.mu.Unlock()
		}
		p, _ = f.next()
		require.Equal(t, step.next, p == third)
		require.True(t, step.next || p == nil)
		took += time.Second
		f.stopMeter(w)
		require.Empty(t, f.jobs.running)
		require.Equal(t, step.took+time.Second, f.cpu.Use().Spent[budget.Processes]-before)
	}
}

// What runs is charged by the clock of its thread.
func TestMeter(t *testing.T) {
	f := newTurnsTest(t, func(*Process) time.Duration { return time.Millisecond })
	p := f.start(1, "1000", nil)
	f.advance(int64(time.Second))
	got, todo := f.next()
	require.Same(t, p, got)
	f.worker.do(f.Table, p, todo, func() {
		for began := f.opts.cpuTime(); f.opts.cpuTime()-began < int64(20*time.Millisecond); {
		}
		f.advance(int64(meterEvery))
		_, _ = f.next()
		require.GreaterOrEqual(t, f.cpu.Use().Spent[budget.Processes], 20*time.Millisecond)
	})
	require.GreaterOrEqual(t, f.cpu.Use().Spent[budget.Processes], 20*time.Millisecond)
	require.Contains(t, f.jobs.turns, uint32(1000))
}

// Users who owe nothing are not remembered.
func TestTurnsForgotten(t *testing.T) {
	f := newTurnsTest(t, func(*Process) time.Duration { return time.Millisecond })
	for pid := 1; pid <= 3; pid++ {
		f.await(f.start(pid, string(rune('0'+pid)), nil))
		f.advance(int64(2 * turnSaved))
		require.Len(t, f.jobs.turns, 1)
	}
}

// owe has a user owe time.
func (f *turnsTest) owe(uid uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.jobs.turns[uid] == nil {
		f.jobs.turns[uid] = &turn{}
	}
	f.jobs.turns[uid].paidNs = f.now() + int64(time.Hour)
}

// waits takes the next process, whose user owes time, and reports whether it has to wait for that.
func (f *turnsTest) waits(p *Process, uid uint32) bool {
	got, todo := f.next()
	require.Same(f.t, p, got)
	if f.begin(&f.worker, p, todo) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Zero(f.t, f.jobs.owing)
	f.jobs.yield(f.now())
	return len(f.jobs.turns[uid].queue) == 1 && p.turn == f.jobs.turns[uid]
}

// Whose a process is that nobody has told of is found out before it is looked at; then it waits for its user's turn.
func TestTurnsOfFound(t *testing.T) {
	f := newTurnsTest(t, func(*Process) time.Duration { return time.Millisecond })
	f.owe(1000)
	f.image(1, 500, "/bin/one")
	f.HandleEvent(exists(numbered(1)))
	found := f.process(numbered(1))
	require.EqualValues(t, nobody, found.user())
	require.True(t, f.waits(found, 1000))
	require.EqualValues(t, 1000, found.user())
	f.await(found)
}

// A process that becomes another user's before it is looked at is that user's, and so is what it begins.
func TestTurnsOfAnotherUser(t *testing.T) {
	f := newTurnsTest(t, func(*Process) time.Duration { return time.Millisecond })
	first := f.start(1, "0", nil)
	f.await(first)
	f.owe(1000)
	second := f.start(2, "1000", first)
	require.Zero(t, second.user())
	f.Lookup(second.id, 2, 1000, nil)
	require.EqualValues(t, 1000, second.user())
	require.EqualValues(t, 1000, f.start(3, "1000", second).user())

	// It leaves the queue of the user who has begun it.
	by := f.start(4, "1000", nil)
	f.await(by)
	other := f.start(5, "2000", by)
	f.mu.Lock()
	f.advance(int64(time.Minute))
	f.jobs.yield(f.now())
	require.Same(t, f.jobs.turns[1000], other.turn)
	f.mu.Unlock()
	f.Lookup(other.id, 5, 2000, nil)
	require.Nil(t, other.turn)
	require.Less(t, f.await(other), time.Second)
}

// Processes that end while they wait for their user's turn are in no queue: their last samples may be another
// user's, and take no other process out of it.
func TestTurnsOfEnded(t *testing.T) {
	f := newTurnsTest(t, func(*Process) time.Duration { return time.Millisecond })
	by := f.start(1, "1000", nil)
	f.await(by)
	f.owe(1000)
	ended, waits := f.start(2, "2000", by), f.start(3, "1000", by)
	turns := func() queue {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.Clone(f.jobs.turns[1000].queue)
	}
	f.mu.Lock()
	f.advance(int64(time.Minute))
	f.jobs.yield(f.now())
	f.mu.Unlock()
	require.Contains(t, turns(), ended)
	f.HandleEvent(record.Event{Kind: record.EventExit, Process: ended.id, PID: 2, TimeNs: uint64(f.now())})
	require.Equal(t, queue{waits}, turns())
	f.Lookup(ended.id, 2, 2000, nil)
	require.EqualValues(t, 2000, ended.user())
	require.Equal(t, queue{waits}, turns())
}

// A user whose group cannot be read pays all the same, and nobody pays for who is not known.
func TestTurnsWithoutGroup(t *testing.T) {
	f := newTurnsTest(t, func(*Process) time.Duration { return time.Millisecond })
	p := f.start(1, "1000", nil)
	f.await(p)
	require.NoError(t, os.Remove(filepath.Join(f.root, "1", "cgroup")))
	f.advance(int64(2 * ownerAge))
	require.EqualValues(t, 1000, f.Table.owned(p).UID)

	f.remove(1)
	f.advance(int64(2 * ownerAge))
	require.EqualValues(t, nobody, f.Table.owned(p).UID)
	f.Lookup(p.id, 1, nobody, nil)
	require.EqualValues(t, 1000, p.user(), "as far as is known")
	f.pay(p, workReread, time.Hour)
	require.NotContains(t, f.jobs.turns, uint32(nobody))
}

// Work that is put back is as urgent as it was, whatever has been scheduled meanwhile.
func TestPutBackIsUrgent(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/some")
	f.Lookup(image1, 42, nobody, nil)
	p, w := f.next()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs.schedule(p, workReread, f.now()+int64(time.Hour))
	p.putBack(w)
	require.Equal(t, w|workReread, p.work)
	require.LessOrEqual(t, p.dueNs, f.now())
}
