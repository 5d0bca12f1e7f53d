//go:build linux

package process

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

// What samples hold of a process that has exited stays for them and takes memory, but no place: another
// process takes that.
func TestHold(t *testing.T) {
	memory := budget.NewMemory(1 << 30)
	f := newFake(t, func(o *Options) { o.MaxProcesses, o.Memory = 1, memory })
	f.image(1, 500, "/bin/one")
	p := f.Lookup(numbered(1), 1, nobody, nil)
	f.work()
	f.Hold(p)
	f.Hold(p) // of another batch
	held := memory.Part(budget.OfProcesses)
	require.NotZero(t, held)
	f.HandleEvent(exit(numbered(1)))
	f.EndInterval()
	f.EndInterval()
	require.Zero(t, f.Stats().Processes)
	require.Equal(t, held, memory.Part(budget.OfProcesses))
	f.image(2, 500, "/bin/two")
	require.True(t, f.enters(2))
	require.False(t, f.sparable(p), "it has no place to give")

	processes := map[uint64]*Process{p.Handle(): p}
	for range 2 {
		got, ok := f.Process(p.Handle())
		require.True(t, ok)
		require.Equal(t, "one", got.Info().Name)
		require.NotNil(t, got.current.info, "its files are used")
		f.Release(processes)
	}
	_, ok := f.Process(p.Handle())
	require.False(t, ok)
	require.Nil(t, p.current.info)
	require.Less(t, memory.Part(budget.OfProcesses), held, "the other one was not looked at")

	f.Hold(p) // by a sample that comes too late
	f.Release(processes)
	f.HandleEvent(exit(numbered(2)))
	f.EndInterval()
	f.EndInterval()
	require.Zero(t, memory.Part(budget.OfProcesses))
	f.Release(nil)
}

// When processes have used up their memory, what is held of a user's makes room, too, and not what
// others have.
func TestHoldTakesShare(t *testing.T) {
	memory := budget.NewMemory(1 << 20)
	f := newFake(t, func(o *Options) { o.Memory = memory })
	const much = 200 << 10
	held := map[uint64]*Process{}
	for pid := 1; pid <= 2; pid++ {
		p := f.lives(pid, 7)
		f.Lookup(p.ID(), pid, nobody, nil)
		f.Hold(p)
		held[p.Handle()] = p
	}
	other := f.lives(3, 8)
	f.Lookup(other.ID(), 3, nobody, nil)
	for _, p := range held {
		f.HandleEvent(exit(p.ID()))
	}
	f.EndInterval()
	f.EndInterval()
	f.knows(3)
	for _, p := range held {
		p.bytes += much
		memory.Add(budget.OfProcesses, much)
	}
	require.True(t, f.enters(4))
	f.knows(3, 4)
	require.Len(t, f.byHandle, 3, "one of those that are held has made room")
	f.Release(held)
	f.knows(3, 4)
	require.Less(t, memory.Part(budget.OfProcesses), int64(much))
}

// What is held and still runs stays when it is released.
func TestHoldOfRunning(t *testing.T) {
	f := newFake(t)
	f.image(1, 500, "/bin/one")
	p := f.Lookup(numbered(1), 1, nobody, nil)
	f.work()
	f.Hold(p)
	f.Release(map[uint64]*Process{p.Handle(): p})
	f.knows(1)
	require.NotNil(t, p.current.info)
	require.Contains(t, f.byHandle, p.Handle())
}

// What has to make room makes some in memory, too, whatever is held of it.
func TestHoldOfSpare(t *testing.T) {
	memory := budget.NewMemory(1 << 30)
	f := newFake(t, func(o *Options) { o.Memory = memory })
	f.image(1, 500, "/bin/one")
	p := f.Lookup(numbered(1), 1, nobody, nil)
	f.work()
	f.Hold(p)
	f.mu.Lock()
	f.expel(p)
	f.mu.Unlock()
	require.Zero(t, memory.Part(budget.OfProcesses))
	require.Equal(t, "one", p.Info().Name, "its samples still have that")
	require.True(t, f.enters(1))
	f.Release(map[uint64]*Process{p.Handle(): p})
	f.knows(1)
}
