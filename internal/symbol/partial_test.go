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
	c.mu.Lock()
	c.grow(c.byKey[cacheKey[int]{file: 1}].Value.(*cached[int]).before, 100)
	c.mu.Unlock()
	require.Equal(t, bytes+100, c.Stats().Bytes, "names of it take more")
	close(wait)
	require.Eventually(t, ended, time.Minute, time.Millisecond)
	require.Equal(t, "visible", name(&opener{path: path}, visible), "it could not be read")
	require.Equal(t, bytes+refusalBytes, c.Stats().Bytes)
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

// Who has used up his room for files that are being read has no names of a file, or fewer; others have
// it read for themselves at once, and then all have its names.
func TestRoomIsOnesOwn(t *testing.T) {
	path := build(t)
	visible := vaddrOf(t, path, "visible")
	c := NewCache[int](CacheOptions{Wait: time.Minute})
	c.tables.limits.free = 0
	crowded, other := &opener{path: path, owner: Owner{UID: 1}}, &opener{path: path, owner: Owner{UID: 2}}
	container := &opener{path: path, owner: Owner{UID: 1, Container: "a"}}
	files := c.tables.begin(crowded.owner)
	defer files.end()
	require.True(t, files.has(tableLimits().user))
	for range 3 {
		for _, o := range []*opener{crowded, container} {
			_, ok := lookup(c, 1, o, visible)
			require.False(t, ok)
		}
	}
	require.EqualValues(t, 1, crowded.opens.Load())
	require.Zero(t, container.opens.Load(), "the room is the user's")
	for _, o := range []*opener{other, crowded} {
		fn, ok := lookup(c, 1, o, visible)
		require.True(t, ok)
		require.Equal(t, "visible", fn.Name)
	}
	require.EqualValues(t, 1, other.opens.Load())
	require.EqualValues(t, 1, crowded.opens.Load())
}

// A file that is read again keeps the names that it has when it is read less far than before.
func TestPartialKeepsMore(t *testing.T) {
	s, _ := withPacked(t, packedLimits().free)
	visible := vaddrOf(t, s.root+s.path, "visible")
	now := time.Now()
	c := NewCache[int](CacheOptions{Wait: time.Minute, Now: func() time.Time { return now }})
	c.tables.limits.free = 0
	o := &rooted{opener{path: s.root + s.path, root: s.root}, s.path}
	packed := c.packed.begin(Owner{})
	require.True(t, packed.has(packedLimits().free+packedLimits().place))
	_, ok := lookup(c, 1, o, visible)
	require.True(t, ok)
	tables := c.tables.begin(Owner{})
	require.True(t, tables.has(tableLimits().place))
	for range 2 {
		now = now.Add(retryAfter)
		opens := o.opens.Load()
		fn, ok := lookup(c, 1, o, visible)
		require.True(t, ok)
		require.Equal(t, "visible", fn.Name)
		require.Equal(t, opens+1, o.opens.Load())
	}
	packed.end()
	tables.end()
	now = now.Add(retryAfter)
	fn, _ := lookup(c, 1, o, s.hidden)
	require.Equal(t, "hidden", fn.Name)
}

// A Go program whose C symbols are still to be read keeps its lines when it cannot be opened for that.
func TestPartialKeepsLines(t *testing.T) {
	path, table, r := goProgram(t, "tables-cgo")
	vaddr, want := inlinedAt(t, table, r)
	c := NewCache[int](CacheOptions{Wait: time.Minute})
	c.tables.limits.free = 0
	user, stranger := &opener{path: path, owner: Owner{UID: 1}}, &opener{path: "/nowhere", owner: Owner{UID: 2}}
	files := c.tables.begin(user.owner)
	defer files.end()
	require.True(t, files.has(tableLimits().user))
	for _, o := range []*opener{user, stranger, user} {
		frames, language := c.Lookup(nil, 1, o, vaddr)
		require.Equal(t, Go, language)
		require.Len(t, frames, len(want))
	}
	require.EqualValues(t, 1, stranger.opens.Load())
	require.EqualValues(t, 2, user.opens.Load(), "for its symbols and its lines")
	e := c.byKey[cacheKey[int]{file: 1}].Value.(*cached[int])
	c.CloseFiles()
	require.Equal(t, e.size(), c.Stats().Bytes)
}
