package symbol

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// That containers have no debug file for a file counts for what it takes, with who they are.
func TestCacheCountsNone(t *testing.T) {
	s := newSplit(t, "-Wl,--build-id")
	c := NewCache[procfs.FileID](CacheOptions{Wait: time.Minute})
	in := func(cgroup string) (bytes int) {
		before := c.Stats().Bytes
		_, ok := lookup(c, procfs.FileID{}, &rooted{opener{path: s.root + s.path, root: s.root, owner: Owner{Container: "c", Cgroup: cgroup}}, s.path}, s.hidden)
		require.False(t, ok)
		return c.Stats().Bytes - before
	}
	in("/")
	require.Equal(t, minTableBytes+len("c")+1000, in(strings.Repeat("x", 1000)))

	const containers = 2000
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before, counted := heap(), c.Stats().Bytes
	for i := range containers {
		in(strconv.Itoa(i))
	}
	require.Less(t, heap()-before, c.Stats().Bytes-counted)
	runtime.KeepAlive(c)
}
