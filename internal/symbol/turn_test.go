package symbol

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A user's files are read one after the other while that computes, and beside what waits in the kernel; what waited
// there goes on when it is its turn. Another user's are read beside them.
func TestReadsInTurn(t *testing.T) {
	path := build(t)
	large, _ := withPacked(t, packedLimits().free)
	vaddr := vaddrOf(t, path, "visible")
	synctest.Test(t, func(t *testing.T) {
		var blocked atomic.Bool
		c := NewCache[int](CacheOptions{Wait: time.Second, blocked: func(int) bool { return blocked.Load() }})
		first := &rooted{opener{path: large.root + large.path, root: large.root, wait: make(chan struct{}), owner: Owner{UID: 1}}, large.path}
		second := &opener{path: path, wait: make(chan struct{}), owner: Owner{UID: 1, Container: "a"}}
		look := func(key int, o Source) bool {
			_, ok := lookup(c, key, o, vaddr)
			return ok
		}
		require.False(t, look(1, first))
		require.False(t, look(2, second))
		require.EqualValues(t, 1, first.opens.Load())
		require.Zero(t, second.opens.Load())
		require.True(t, look(3, &opener{path: path, owner: Owner{UID: 2}}))

		blocked.Store(true)
		time.Sleep(turnPoll)
		synctest.Wait()
		require.EqualValues(t, 1, second.opens.Load())
		blocked.Store(false)
		close(first.wait)
		time.Sleep(time.Second)
		require.Len(t, c.reading.now, 2, "it waits for the other one")
		close(second.wait)
		time.Sleep(turnPoll)
		synctest.Wait()
		require.Empty(t, c.reading.now)
		c.CloseFiles()
		require.True(t, look(2, second))
		require.EqualValues(t, 2, c.Stats().Loads-1)
		require.Zero(t, c.Stats().Failures)
		require.Empty(t, c.reading.turns)
	})
}

// growingOf is the map of a user's process.
type growingOf struct {
	*growing
	uid uint32
}

func (g growingOf) Owner() Owner { return Owner{UID: g.uid} }

// Whose turn comes when there is no CPU time left is refused, at its beginning and in the middle, and asks again.
func TestReadsInTurnRefused(t *testing.T) {
	path := build(t)
	large, _ := withPacked(t, packedLimits().free)
	vaddr := vaddrOf(t, path, "visible")
	synctest.Test(t, func(t *testing.T) {
		var blocked, busy atomic.Bool
		c := NewCache[int](CacheOptions{
			Wait: time.Second, blocked: func(int) bool { return blocked.Load() }, Busy: func(uint32) bool { return busy.Load() },
		})
		maps := NewPerfMaps[int](c.opts)
		first := &rooted{opener{path: large.root + large.path, root: large.root, wait: make(chan struct{}), owner: Owner{UID: 1}}, large.path}
		second := &opener{path: path, owner: Owner{UID: 1}}
		_, ok := lookup(c, 1, first, vaddr)
		require.False(t, ok)
		_, ok = lookup(c, 2, second, vaddr)
		require.False(t, ok)
		hangs := hung{make(chan struct{})}
		maps.Lookup(nil, 1, hangs, 1, Native)
		g := growingOf{&growing{}, 1}
		g.write("1 1 a\n")
		frames, _ := maps.Lookup(nil, 2, g, 1, Native)
		require.Empty(t, frames)

		busy.Store(true)
		blocked.Store(true)
		time.Sleep(turnPoll)
		synctest.Wait()
		require.Zero(t, second.opens.Load())
		require.EqualValues(t, 1, c.Stats().Refused)
		require.EqualValues(t, 1, maps.Stats().Refused)
		close(first.wait)
		close(hangs.wait)
		synctest.Wait()
		require.EqualValues(t, 2, c.Stats().Refused)
		require.Zero(t, c.Stats().Failures+maps.Stats().Failures)
		require.Empty(t, c.reading.now)
		require.Empty(t, c.reading.turns)

		busy.Store(false)
		c.CloseFiles()
		maps.Refresh()
		_, ok = lookup(c, 1, first, large.hidden)
		require.True(t, ok)
		_, ok = lookup(c, 2, second, vaddr)
		require.True(t, ok)
		frames, _ = maps.Lookup(nil, 2, g, 1, Native)
		require.Len(t, frames, 1)
	})
}

// What was refused in the middle is not read on, though there may be time again; what others wait for goes on.
func TestStepRefused(t *testing.T) {
	turn := errBusy
	l := loader{turn: func() error { return turn }}
	require.ErrorIs(t, l.step(), errBusy)
	require.NoError(t, l.stepAlone())
	turn = nil
	require.ErrorIs(t, l.step(), errBusy)
	l = loader{turn: l.turn}
	require.NoError(t, l.step())
}
