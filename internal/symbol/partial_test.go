package symbol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A file that was read in part keeps its names until it was read again, whatever comes between.
func TestCachePartial(t *testing.T) {
	s, _ := withPacked(t, packedLimits().free)
	visible := vaddrOf(t, s.root+s.path, "visible")
	now, busy := time.Now(), false
	c := NewCache[int](CacheOptions{
		Wait: 20 * time.Millisecond * waitShare,
		Now:  func() time.Time { return now },
		Busy: func(uint32) bool { return busy },
	})
	others := c.packed.begin(Owner{})
	require.True(t, others.has(packedLimits().free+packedLimits().place))
	path := s.root + s.path
	name := func(o *opener, vaddr uint64) string {
		fn, _ := lookup(c, 1, &rooted{opener: opener{path: o.path, root: s.root, wait: o.wait}, path: s.path}, vaddr)
		return fn.Name
	}
	ended := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.reading.now) == 0
	}
	require.Eventually(t, func() bool { return name(&opener{path: path}, visible) == "visible" }, time.Minute, time.Millisecond)
	bytes, loads := c.Stats().Bytes, c.Stats().Loads

	now, busy = now.Add(retryAfter), true
	require.Equal(t, "visible", name(&opener{path: path}, visible), "nothing is read for now")
	busy = false

	wait := make(chan struct{})
	require.Equal(t, "visible", name(&opener{path: "/nowhere", wait: wait}, visible), "it is being read")
	require.Equal(t, bytes, c.Stats().Bytes)
	close(wait)
	require.Eventually(t, ended, time.Minute, time.Millisecond)
	require.Equal(t, "visible", name(&opener{path: path}, visible), "it could not be read")
	require.Equal(t, bytes, c.Stats().Bytes)
	require.Equal(t, loads+1, c.Stats().Loads)

	now = now.Add(retryAfter)
	e := c.byKey[cacheKey[int]{file: 1}].Value.(*cached[int])
	e.lines.reading = make(chan struct{})
	require.Equal(t, "visible", name(&opener{path: path}, visible), "lines of it are being read")
	require.Equal(t, loads+1, c.Stats().Loads)
	e.lines.reading = nil

	others.end()
	require.Eventually(t, func() bool { return name(&opener{path: path}, s.hidden) == "hidden" }, time.Minute, time.Millisecond)
	require.Equal(t, loads+2, c.Stats().Loads)
}
