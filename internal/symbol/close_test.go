package symbol

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Close waits for a file that is being read, as long as it may, and nothing is read after it.
func TestCacheClose(t *testing.T) {
	path := build(t)
	vaddr := vaddrOf(t, path, "visible")
	synctest.Test(t, func(t *testing.T) {
		wait := make(chan struct{})
		c := NewCache[int](CacheOptions{Wait: 20 * time.Millisecond})
		_, ok := lookup(c, 1, &opener{path: path}, vaddr)
		require.True(t, ok)
		_, ok = lookup(c, 2, &opener{path: path, wait: wait}, vaddr)
		require.False(t, ok)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorContains(t, c.Close(ctx), "1 files are still being read")
		require.Equal(t, time.Second, time.Since(began).Round(closePoll))

		close(wait)
		require.NoError(t, c.Close(t.Context()))
		require.Empty(t, c.reading.now)
		_, ok = lookup(c, 1, &opener{path: path}, vaddr)
		require.True(t, ok, "what is known stays known")
		_, ok = lookup(c, 3, &opener{path: path}, vaddr)
		require.False(t, ok)
		require.EqualValues(t, 2, c.Stats().Loads)
	})
}

// Stop ends the wait of lookups that wait already, and nobody waits after it.
func TestStopEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const until = time.Second
		h := hung{make(chan struct{})}
		files := NewCache[int](CacheOptions{Wait: time.Hour})
		maps := NewPerfMaps[int](CacheOptions{Wait: time.Hour})
		took := func(ask func()) time.Duration {
			began := time.Now()
			ask()
			return time.Since(began)
		}
		file := &opener{wait: h.wait}
		askFile := func() { files.Lookup(nil, 1, file, 1) }
		askMap := func() { maps.Lookup(nil, 1, h, 1, Native) }
		time.AfterFunc(until, files.Stop)
		require.Equal(t, until, took(askFile))
		time.AfterFunc(until, maps.Stop)
		require.Equal(t, until, took(askMap))
		require.EqualValues(t, 1, files.Stats().TimedOut)
		require.EqualValues(t, 1, maps.Stats().TimedOut)
		maps.Refresh()
		require.Zero(t, took(askFile))
		require.Zero(t, took(askMap))
		close(h.wait)
		require.NoError(t, files.Close(t.Context()))
		require.NoError(t, maps.Close(t.Context()))
	})
}

// Who is in a hurry waits for nothing, until there is time again.
func TestHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = time.Minute
		h := hung{make(chan struct{})}
		files := NewCache[int](CacheOptions{Wait: wait})
		maps := NewPerfMaps[int](CacheOptions{Wait: wait})
		for i, hurried := range []bool{true, false} {
			want := wait / waitShare
			if hurried {
				want = 0
			}
			files.Hurry(hurried)
			maps.Hurry(hurried)
			began := time.Now()
			files.Lookup(nil, i, &opener{wait: h.wait}, 1)
			require.Equal(t, want, time.Since(began))
			began = time.Now()
			maps.Lookup(nil, i, h, 1, Native)
			require.Equal(t, want, time.Since(began))
			require.EqualValues(t, i+1, files.Stats().TimedOut)
			require.EqualValues(t, i+1, maps.Stats().TimedOut)
		}
		close(h.wait)
		require.NoError(t, files.Close(t.Context()))
		require.NoError(t, maps.Close(t.Context()))
	})
}

// Who is in a hurry has no lines of a Go program read: what is read for a moment only comes to nothing.
func TestHurryOfLines(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	o := &opener{path: path}
	c := NewCache[int](CacheOptions{Wait: time.Minute})
	defer c.CloseFiles()
	frames, _ := c.Lookup(nil, 1, o, table.Start)
	require.NotEmpty(t, frames)
	c.CloseFiles()
	reads := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.reading.now)
	}
	require.Eventually(t, func() bool { return reads() == 0 }, time.Minute, time.Millisecond, "what is closed")
	c.Hurry(true)
	frames, _ = c.Lookup(nil, 1, o, table.Limit-1)
	require.Empty(t, frames)
	require.Zero(t, reads())
	require.EqualValues(t, 2, o.opens.Load(), "once for all, once for lines")
	c.Hurry(false)
	frames, _ = c.Lookup(nil, 1, o, table.Limit-1)
	require.NotEmpty(t, frames)
}

// A hurry ends the wait of lookups that wait already, as often as there is time again; after Stop there is none.
func TestHurryEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const until = time.Second
		h := hung{make(chan struct{})}
		files := NewCache[int](CacheOptions{Wait: time.Hour})
		maps := NewPerfMaps[int](CacheOptions{Wait: time.Hour})
		took := func(ask func()) time.Duration {
			began := time.Now()
			ask()
			return time.Since(began)
		}
		key := 0
		askFile := func() { files.Lookup(nil, key, &opener{wait: h.wait}, 1) }
		askMap := func() { maps.Lookup(nil, key, h, 1, Native) }
		for key = range 2 {
			files.Hurry(false)
			maps.Hurry(false)
			time.AfterFunc(until, func() { files.Hurry(true) })
			require.Equal(t, until, took(askFile))
			time.AfterFunc(until, func() { maps.Hurry(true) })
			require.Equal(t, until, took(askMap))
			require.EqualValues(t, key+1, files.Stats().TimedOut)
			require.EqualValues(t, key+1, maps.Stats().TimedOut)
		}
		key = 0 // which hangs, and does not only wait for its turn
		files.Hurry(false)
		files.Stop()
		files.Hurry(false)
		require.Zero(t, took(askFile))
		maps.Stop()
		maps.Hurry(false)
		maps.Refresh()
		require.Zero(t, took(askMap))
		close(h.wait)
		require.NoError(t, files.Close(t.Context()))
		require.NoError(t, maps.Close(t.Context()))
	})
}

// What is being read when nobody wants it any more is not read to its end.
func TestLoadAbandoned(t *testing.T) {
	closed := &atomic.Bool{}
	l := loader{src: &opener{path: build(t)}, packed: newRoom(packedLimits()), tables: newRoom(tableLimits()), maxBytes: 1 << 20, closed: closed}
	known, err := l.load()
	require.NoError(t, err)
	require.NotZero(t, known.table.Bytes())
	closed.Store(true)
	known, err = l.load()
	require.ErrorIs(t, err, errClosed)
	require.Nil(t, known)
}

// A file that takes too much CPU time is not read to its end.
func TestLoadPaced(t *testing.T) {
	s := newSplit(t)
	noise := make([]byte, 1<<20) // takes no less when it is packed
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	s.withDebugData(t, pack(t, noise))
	enough := errors.New("enough")
	steps := 0
	l := loader{src: &opener{path: s.root + s.path}, maxBytes: 1 << 20, packed: newRoom(packedLimits()), tables: newRoom(tableLimits()), pace: func() error {
		steps++
		return enough
	}}
	_, err := l.load()
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, steps)
}

// Close waits for a perf map that is being read.
func TestPerfMapsClose(t *testing.T) {
	c := NewPerfMaps[int](CacheOptions{})
	c.mu.Lock()
	one := c.reading.begin(Owner{}, "perf map")
	c.mu.Unlock()
	ended := make(chan error)
	go func() { ended <- c.Close(t.Context()) }()
	require.Eventually(t, func() bool { return c.reading.closed.Load() }, time.Minute, time.Millisecond)
	c.mu.Lock()
	c.reading.end(one)
	require.Nil(t, c.reading.begin(Owner{}, "another"))
	c.mu.Unlock()
	require.NoError(t, <-ended)
}
