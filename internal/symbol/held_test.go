package symbol

import (
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// libraryOf returns a library with so many functions, which it names once, and whose names are long and cannot be
// compressed.
func libraryOf(t testing.TB, functions int) string {
	t.Helper()
	random := rand.NewChaCha8([32]byte{})
	var source strings.Builder
	source.WriteString(".text\n")
	for range functions {
		bytes := make([]byte, 100)
		_, _ = random.Read(bytes)
		name := "f" + hex.EncodeToString(bytes)
		source.WriteString(".globl " + name + "\n.type " + name + ",%function\n" + name + ": .byte 0\n.size " + name + ",1\n")
	}
	dir := t.TempDir()
	from, out := filepath.Join(dir, "l.s"), filepath.Join(dir, "l.so")
	require.NoError(t, os.WriteFile(from, []byte(source.String()), 0o644))
	testutil.Compile(t, out, "gcc", "-shared", "-nostdlib", "-s", "-Wl,--build-id=none", from)
	return out
}

// counted checks that what users hold adds up to what the cache holds.
func (h *held) counted(t *testing.T) {
	t.Helper()
	sum := 0
	for _, n := range h.users {
		require.Positive(t, n)
		sum += n
	}
	require.Equal(t, h.bytes, sum)
}

// A user with large files, however many, has none of another user's read again. Of one file no more is kept than
// leaves room for others.
func TestCacheUsersApart(t *testing.T) {
	const files, most = 10, 64 << 10
	small := &opener{path: build(t), owner: Owner{UID: 1}}
	vaddr := vaddrOf(t, small.path, "visible")
	large := &opener{path: libraryOf(t, 250), owner: Owner{UID: 2}}
	c := NewCache[int](CacheOptions{Wait: time.Minute, MaxBytes: most})
	look := func() {
		for i := range files {
			_, ok := lookup(c, i, small, vaddr)
			require.True(t, ok)
		}
	}
	look()
	for i := range uint64(4) {
		lookup(c, files+int(i), large, 0)
		require.Equal(t, i+1, c.Stats().Truncated, "what is left out of a file is counted")
		table := c.order.Front().Value.(*cached[int]).known.table
		require.LessOrEqual(t, table.Bytes(), most/userShare)
		require.Greater(t, table.Bytes(), most/userShare*3/4)
		if i == 1 {
			continue // several, one after the other
		}
		look()
		require.Equal(t, files+i+1, c.Stats().Loads)
		require.LessOrEqual(t, c.Stats().Bytes, most)
		c.counted(t)
	}
	require.Greater(t, c.users[2], most/userShare/2, "what there is room for stays")
}

// Names that are kept ready of a user's large file make no room for themselves where others are.
func TestCacheNamesApart(t *testing.T) {
	const files, most = 10, 64 << 10
	small := &opener{path: build(t), owner: Owner{UID: 1}}
	vaddr := vaddrOf(t, small.path, "visible")
	large := &opener{path: libraryOf(t, 400), owner: Owner{UID: 2}}
	c := NewCache[int](CacheOptions{Wait: time.Minute, MaxBytes: most})
	for i := range files {
		lookup(c, i, small, vaddr)
	}
	lookup(c, files, large, 0)
	table := c.order.Front().Value.(*cached[int]).known.table
	for i := range table.Len() {
		fn, ok := lookup(c, files, large, table.start(i))
		require.True(t, ok)
		require.Len(t, fn.Name, 201)
		require.LessOrEqual(t, c.Stats().Bytes, most)
	}
	require.Equal(t, files+1, c.Stats().Files)
	c.counted(t)
}

// What nobody has used for long goes before what a user has who has most.
func TestCacheIdle(t *testing.T) {
	now := time.Now()
	path := build(t)
	vaddr := vaddrOf(t, path, "visible")
	c := NewCache[int](CacheOptions{Wait: time.Minute, Now: func() time.Time { return now }})
	loaded := func(key int, uid uint32) bool {
		before := c.Stats().Loads
		_, ok := lookup(c, key, &opener{path: path, owner: Owner{UID: uid}}, vaddr)
		require.True(t, ok)
		return c.Stats().Loads > before
	}
	require.True(t, loaded(1, 1))
	c.opts.MaxBytes = 4 * c.Stats().Bytes
	for key := 2; key <= 4; key++ {
		require.True(t, loaded(key, 2))
	}
	require.True(t, loaded(5, 2))
	require.False(t, loaded(1, 1), "who has most has lost one of his own")
	require.True(t, loaded(2, 2))
	now = now.Add(defaultIdle)
	for _, key := range []int{4, 5, 2} {
		require.False(t, loaded(key, 2))
	}
	require.True(t, loaded(6, 2))
	for _, key := range []int{4, 5, 2} {
		require.False(t, loaded(key, 2))
	}
	require.True(t, loaded(1, 1))
}

// mapOf is a perf map of a user's process.
type mapOf struct {
	*growing
	uid uint32
}

func (m mapOf) Owner() Owner { return Owner{UID: m.uid} }

// A user with large perf maps has none of another user's read again.
func TestPerfMapsUsersApart(t *testing.T) {
	const processes, most = 10, 64 << 10
	c := NewPerfMaps[int](CacheOptions{Wait: time.Minute, MaxBytes: most})
	small := mapOf{&growing{}, 1}
	small.write("100 10 a\n")
	large := mapOf{&growing{}, 2}
	for i := range 1000 {
		large.write(hexText(uint64(i)*16) + " 10 " + strings.Repeat("x", 100) + hexText(uint64(i)) + "\n")
	}
	look := func() {
		for i := range processes {
			frames, _ := c.Lookup(nil, i, small, 0x100, Native)
			require.Len(t, frames, 1)
		}
	}
	look()
	for i := range uint64(4) {
		frames, _ := c.Lookup(nil, processes+int(i), large, 0, Native)
		require.Len(t, frames, 1)
		require.Equal(t, i+1, c.Stats().Truncated, "what is left out of a map is counted")
		if i == 1 {
			continue
		}
		look()
		require.Equal(t, processes+i+1, c.Stats().Loads)
		require.LessOrEqual(t, c.Stats().Bytes, most)
		c.counted(t)
	}
}
