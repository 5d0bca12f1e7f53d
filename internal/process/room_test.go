//go:build linux

package process

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func crowd(t *testing.T, most int) *fake {
	return newFake(t, func(o *Options) { o.MaxProcesses = most })
}

func numbered(pid int) record.ProcessID { return record.ProcessID{TGID: uint32(pid), StartNs: 5e9} }

// lives returns a process of a user that was looked at and not sampled.
func (f *fake) lives(pid int, uid uint32) *Process {
	f.image(pid, 500, "/bin/one")
	f.write(pid, "status", fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\nNSpid:\t%d\n", uid, pid))
	f.HandleEvent(exists(numbered(pid)))
	f.work()
	p := f.process(numbered(pid))
	require.Equal(f.t, uid, p.user())
	return p
}

// enters reports whether a sampled process finds room.
func (f *fake) enters(pid int) bool { return f.Lookup(numbered(pid), pid, nobody, nil).Handle() != 0 }

// knows says which processes are in the table.
func (f *fake) knows(pids ...int) {
	f.t.Helper()
	require.Len(f.t, f.byID, len(pids))
	for _, pid := range pids {
		require.Contains(f.t, f.byID, numbered(pid))
	}
}

// A user who keeps processes asleep does not keep those of others out. What has made room is as if it
// was new when it is sampled.
func TestRoomIsMade(t *testing.T) {
	f := crowd(t, 3)
	for pid := range 3 {
		f.lives(pid+1, 7)
	}
	require.Zero(t, f.Stats().Refused)
	f.lives(4, 8)
	f.knows(2, 3, 4)
	require.EqualValues(t, 1, f.Stats().Refused)
	require.True(t, f.published.forgotten(numbered(1)))
	require.NotContains(t, f.byPID, 1)

	require.True(t, f.enters(1))
	f.knows(1, 3, 4)
	require.Equal(t, 1, f.work(), "it is looked at")
	require.True(t, f.process(numbered(1)).Info().Loaded)
	_, published := f.published.of(numbered(1))
	require.True(t, published)
	for range 2 {
		f.EndInterval()
	}
	f.knows(1, 3, 4)
}

// What a process has begun with is taken back when it finds no room, and when it makes room, though nothing was told
// of it; at its end that is left to the sampling programs.
func TestRoomOfBegun(t *testing.T) {
	child := numbered(3)
	for name, begins := range map[string]record.Event{
		"fork": {Kind: record.EventFork, Process: child, Parent: numbered(1), PID: 3},
		"exec": {Kind: record.EventExec, Process: child, PID: 3},
		"scan": exists(child),
	} {
		t.Run(name, func(t *testing.T) {
			f := crowd(t, 2)
			for pid := 1; pid <= 2; pid++ {
				f.lives(pid, uint32(pid))
				require.True(t, f.enters(pid))
			}
			f.HandleEvent(begins)
			f.knows(1, 2)
			require.Equal(t, []record.ProcessID{child}, f.published.running)
			require.False(t, f.enters(3))
			require.Len(t, f.published.running, 1, "its samples take nothing back")
		})
	}

	f := crowd(t, 3)
	parent := f.lives(1, 7)
	parent.inherited, parent.publication = 1, unpublished
	first, second := f.forks(parent, 2), f.forks(parent, 3)
	require.True(t, f.enters(4))
	require.True(t, f.enters(5))
	require.Equal(t, []record.ProcessID{parent.ID(), first.ID()}, f.published.running)
	f.HandleEvent(exit(second.ID()))
	f.takeBack()
	require.NotContains(t, f.published.forgot, second.ID())
}

// An exec that finds no room has replaced what ran before all the same: what is there now is not shown
// for that, and it gives its place back.
func TestExecWithoutRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		next   record.ProcessID
		enters func(f *fake, next record.ProcessID)
	}{
		"exec": {image2, func(f *fake, next record.ProcessID) {
			f.HandleEvent(execAt(next, f.now(), "/bin/two"))
			f.Lookup(next, 42, nobody, nil)
		}},
		"a sample of it": {image2, func(f *fake, next record.ProcessID) { f.Lookup(next, 42, nobody, nil) }},
		"its PID reused": {reused, func(f *fake, next record.ProcessID) { f.HandleEvent(exists(next)) }},
	} {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, looked at meanwhile: %v", name, running), func(t *testing.T) {
				f := crowd(t, 2)
				f.lives(1, 8)
				f.enters(1)
				f.image(42, 500, "/bin/one")
				p := f.Lookup(image1, 42, nobody, nil)
				f.work()
				f.Hold(p)
				f.advance(int64(sampleDelay + execDuration + time.Second))
				before := p.Info()
				require.Equal(t, "one", before.Name)

				mapping := record.Event{Kind: record.EventMapping, PID: 42}
				f.HandleEvent(mapping)
				var w work
				if running {
					got, todo := f.next()
					require.Same(t, p, got)
					w = todo
				}
				refused := f.Stats().Refused
				tc.enters(f, tc.next)
				require.Greater(t, f.Stats().Refused, refused)
				require.NotContains(t, f.byID, tc.next)
				require.True(t, p.exited)
				f.image(42, tc.next.StartNs/1e7, "/bin/two")
				f.write(42, "maps", "30000-40000 r-xp 00000000 00:00 0 [two]\n")
				if running {
					f.run(p, w, &f.scratch)
					f.done(p)
				}
				f.HandleEvent(mapping)
				f.lookAgain()
				require.Same(t, before, p.Info())
				f.takeBack()
				require.True(t, f.published.forgotten(image1))

				f.EndInterval()
				f.EndInterval()
				require.NotZero(t, f.Lookup(tc.next, 42, nobody, nil).Handle(), "there is room")
				f.work()
				require.Equal(t, "two", f.process(tc.next).Info().Name)
				require.Same(t, before, p.Info())
			})
		}
	}
}

// When an exec that found no room was is known from its event: a sample that comes later does not make
// it earlier.
func TestExecWithoutRoomIsDated(t *testing.T) {
	f := crowd(t, 2)
	f.lives(1, 8)
	f.enters(1)
	f.image(42, 500, "/bin/one")
	p := f.Lookup(image1, 42, nobody, nil)
	f.work()
	f.advance(int64(execDuration) + ms)
	f.HandleEvent(execAt(image2, f.now(), "/bin/two"))
	f.Lookup(image2, 42, nobody, nil)
	require.Equal(t, "one", p.Info().Name)
}

// What waits for its turn makes room, too, and waits no longer. What the kernel has copied for it at
// its exec or fork takes no room there either.
func TestRoomOfWaiting(t *testing.T) {
	f := crowd(t, 1)
	p := f.executes(1, programA)
	require.Len(t, f.jobs.queue, 1)
	require.True(t, f.enters(2))
	require.Len(t, f.jobs.queue, 1)
	require.Same(t, f.process(numbered(2)), f.jobs.queue[0])
	require.True(t, f.published.forgotten(p.ID()))
	require.Empty(t, f.programs.without, "nothing was found out about its program")
}

// What has ended without a sample comes first. What was sampled late has to be handed over.
func TestRoomOfEnded(t *testing.T) {
	f := crowd(t, 3)
	f.lives(1, 7)
	f.lives(2, 7)
	f.lives(3, 7)
	f.HandleEvent(exit(numbered(2)))
	f.HandleEvent(exit(numbered(3)))
	f.Lookup(numbered(2), 2, nobody, nil)
	require.True(t, f.enters(4))
	f.knows(1, 2, 4)
	require.EqualValues(t, 1, f.Stats().Refused)
	require.True(t, f.enters(5))
	f.knows(2, 4, 5)
}

// Of those that lose nothing, the one goes whose user has the most.
func TestRoomOfMany(t *testing.T) {
	f := crowd(t, 5)
	f.lives(1, 7)
	f.lives(2, 7)
	for pid := range 3 {
		f.lives(pid+3, 8)
	}
	for pid := range 3 {
		require.True(t, f.enters(pid+6))
	}
	f.knows(1, 2, 6, 7, 8)
}

// A user has half of the table for what was sampled or has label sources. What he has beside that
// goes in the order of what is lost.
func TestRoomShare(t *testing.T) {
	sampled := func(f *fake, p *Process) { f.Lookup(p.ID(), p.pid, nobody, nil) }
	idle := func(f *fake, p *Process) {
		sampled(f, p)
		p.lately.Store(false)
	}
	over := func(f *fake, p *Process) {
		idle(f, p)
		f.HandleEvent(exit(p.ID()))
	}
	labelled := func(_ *fake, p *Process) { p.inherited = 1 }
	plain := func(*fake, *Process) {}
	type is = func(*fake, *Process)
	for name, tc := range map[string]struct {
		of         [3]is // the processes of the user, from PID 1 on
		goes       int
		forSampled bool // but for no other
	}{
		"nothing lost": {[3]is{labelled, plain, labelled}, 2, false},
		"labels":       {[3]is{sampled, idle, labelled}, 3, false},
		"idle":         {[3]is{sampled, over, idle}, 3, true},
		"sampled":      {[3]is{sampled, sampled, over}, 1, true},
		"over":         {[3]is{over, sampled, sampled}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := crowd(t, 4)
			for i, is := range tc.of {
				is(f, f.lives(i+1, 7))
			}
			sampled(f, f.lives(4, 8))
			if tc.forSampled {
				f.HandleEvent(exists(numbered(5)))
				f.knows(1, 2, 3, 4)
			}
			require.True(t, f.enters(5))
			require.NotContains(t, f.byID, numbered(tc.goes))
			for range 2 {
				require.False(t, f.enters(6), "it has no more than half")
				f.advance(int64(spareGap))
			}
			require.Len(t, f.byID, 4)
		})
	}
}

// A user's processes that were not looked at yet count as his.
func TestRoomShareOfUnread(t *testing.T) {
	f := crowd(t, 4)
	by := f.lives(1, 7)
	by.inherited = 1
	for pid := 2; pid <= 4; pid++ {
		f.HandleEvent(record.Event{Kind: record.EventFork, Process: numbered(pid), Parent: by.id, PID: pid, TimeNs: uint64(f.now())})
		if pid > 2 {
			id := numbered(pid)
			id.ExecID++
			f.HandleEvent(execAt(id, f.now(), "/bin/two"))
			f.process(id).inherited = 1
		}
	}
	require.Len(t, f.byID, 4)
	require.True(t, f.enters(5))
}

// A process that was let go before its samples were handed over, and of which one comes still, is not
// let go for that.
func TestRoomOfSampled(t *testing.T) {
	f := crowd(t, 1)
	p := f.lives(1, 7)
	f.Lookup(p.ID(), 1, nobody, nil)
	f.HandleEvent(exit(p.ID()))
	require.True(t, f.enters(2))
	f.HandleEvent(exit(numbered(2)))
	f.advance(int64(spareGap))
	require.True(t, f.enters(1))
	f.EndInterval()
	f.EndInterval()
	f.knows(1)
}

// A user who has more processes that are sampled than there is room for does not have all of them
// take each other's place at each sample.
func TestRoomOfSampledIsMadeSlowly(t *testing.T) {
	const most = 2 * sampledParts
	f := crowd(t, most)
	for pid := range most {
		require.True(t, f.enters(pid+1))
	}
	entered := func() (n int) {
		for pid := range most {
			if f.enters(most + pid + 1) {
				n++
			}
		}
		return n
	}
	require.Equal(t, 2, entered())
	f.advance(int64(spareGap))
	require.Equal(t, 4, entered())
	require.Len(t, f.byID, most)
}

// It is not searched in vain each time, and nobody goes who is worth more by now.
func TestRoomIsSearched(t *testing.T) {
	f := crowd(t, 2)
	first, second := f.lives(1, 7), f.lives(2, 8)
	first.sampled.Store(true)
	second.sampled.Store(true)
	require.False(t, f.enters(3))
	second.sampled.Store(false)
	require.False(t, f.enters(3))
	f.advance(int64(spareGap) - 1)
	require.False(t, f.enters(3))
	first.sampled.Store(false)
	f.advance(1)
	require.True(t, f.enters(3))
	f.knows(2, 3)
	second.sampled.Store(true)
	require.False(t, f.enters(4))
	f.knows(2, 3)

	second.sampled.Store(false)
	f.advance(int64(spareGap))
	require.True(t, f.enters(4))
	f.knows(3, 4)
}

// What could be spared a while ago may be worth more than what came since.
func TestRoomIsSearchedAgain(t *testing.T) {
	f := crowd(t, 4)
	for pid := range 3 {
		f.lives(pid+1, 7)
		f.enters(pid + 1)
	}
	f.lives(4, 8)
	require.True(t, f.enters(4))
	f.HandleEvent(exists(numbered(5)))
	f.knows(1, 2, 3, 4) // one could be spared for a process that is sampled
	f.process(numbered(4)).sampled.Store(false)
	f.advance(int64(spareGap))
	require.True(t, f.enters(5))
	f.knows(1, 2, 3, 5)
}

// A process that a worker has, or that is left alone, is not let go.
func TestRoomOfBusy(t *testing.T) {
	f := crowd(t, 3)
	f.lives(1, 7).state = jobRunning
	f.lives(2, 7).quarantinedNs = f.now() + 1
	f.lives(3, 7)
	require.True(t, f.enters(4))
	f.knows(1, 2, 4)
	f.advance(int64(spareGap))
	require.True(t, f.enters(5))
	f.knows(1, 4, 5)
}

// Room is made in memory, too.
func TestRoomInMemory(t *testing.T) {
	memory := budget.NewMemory(1 << 20)
	f := newFake(t, func(o *Options) { o.Memory = memory })
	pid := 1
	for ; f.Stats().Refused == 0; pid++ {
		f.HandleEvent(exists(numbered(pid)))
	}
	require.True(t, f.enters(pid))
	require.InDelta(t, memory.Limit()/2, memory.Part(budget.OfProcesses), float64(4*processBytes))
}

// A user has half of the memory for processes with label sources, however many these are, when all of
// it is used.
func TestRoomShareOfMemory(t *testing.T) {
	memory := budget.NewMemory(1 << 20)
	f := crowd(t, 8)
	f.opts.Memory = memory
	for pid := range 3 {
		f.lives(pid+1, 7).inherited = 1
	}
	f.lives(4, 8).inherited = 1
	f.lives(5, 9).inherited = 1
	for pid, bytes := range map[int]int{1: 256 << 10, 2: 100 << 10, 4: 100 << 10, 5: 100 << 10} {
		f.process(numbered(pid)).bytes += bytes
	}
	memory.Add(budget.OfProcesses, int(memory.Limit())/4)
	require.True(t, f.held(fullParts))
	require.True(t, f.enters(6), "there is room without what one has beside half")
	f.knows(2, 3, 4, 5, 6)

	memory.Add(budget.OfProcesses, int(memory.Limit())/4)
	f.advance(int64(spareGap))
	require.False(t, f.enters(7))
	f.knows(2, 3, 4, 5, 6)
}

// Memory that others have used up is not had back from processes that have label sources.
func TestRoomInOthersMemory(t *testing.T) {
	memory := budget.NewMemory(1 << 20)
	f := newFake(t, func(o *Options) { o.Memory = memory })
	f.lives(1, 7).inherited = 1
	memory.Add(budget.OfSymbols, int(memory.Limit()))
	require.False(t, f.enters(2))
	f.knows(1)
}
