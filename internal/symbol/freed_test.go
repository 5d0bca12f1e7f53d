package symbol

import (
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// collections are what the program asked for; others do not take place.
func collections(t *testing.T) func() uint32 {
	percent := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	return func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
}

// Tables that were dropped give their memory back when a batch ends, if that is much.
func TestFreedTables(t *testing.T) {
	o := &opener{path: libraryOf(t, 1000)}
	c := NewCache[int](CacheOptions{Wait: time.Minute, MaxBytes: 1 << 20})
	count := collections(t)
	before := count()
	var gone atomic.Int32
	for key := 0; c.freed <= c.opts.MaxBytes; key++ {
		require.Less(t, key, 100)
		require.Equal(t, before, count())
		lookup(c, key, o, 0)
		table := c.order.Front().Value.(*cached[int]).known.table
		require.Greater(t, table.Bytes(), outsideBytes)
		runtime.AddCleanup(table, func(int) { gone.Add(1) }, 0)
		if key < 5 {
			c.CloseFiles()
		}
	}
	require.Zero(t, gone.Load())
	c.CloseFiles()
	require.Equal(t, before+1, count())
	dropped := c.Stats().Loads - uint64(c.Stats().Files)
	require.Greater(t, dropped, uint64(3))
	require.Eventually(t, func() bool { return uint64(gone.Load()) == dropped }, time.Minute, time.Millisecond)
	c.CloseFiles()
	require.Equal(t, before+1, count())
}

// A perf map that is read on leaves one behind each time.
func TestFreedMaps(t *testing.T) {
	c := NewPerfMaps[int](CacheOptions{Wait: time.Minute, MaxBytes: 1 << 20})
	g := &growing{}
	for i := range 1000 {
		g.write(hexText(uint64(i)*16) + " 10 " + strings.Repeat("x", 100) + hexText(uint64(i)) + "\n")
	}
	count := collections(t)
	before := count()
	for range 5 {
		g.write("100 10 a\n")
		c.Lookup(nil, 1, g, 0x100, Native)
		c.Refresh()
	}
	require.Equal(t, before, count())
	for range 10 {
		g.write("100 10 a\n")
		c.Lookup(nil, 1, g, 0x100, Native)
		c.Refresh()
	}
	require.Equal(t, before+1, count())
}
