package symbol

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// linesOf returns what is known of a Go program.
func linesOf(c *Cache[string], key string) *goLines {
	return &c.byKey[cacheKey[string]{file: key}].Value.(*cached[string]).lines
}

// A user who has a program looked up at any number of addresses drops nothing that is known for another.
func TestLinesFlood(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	const addresses, waves = 10_000, 4
	c := NewCache[string](CacheOptions{Wait: 10 * time.Minute})
	defer c.CloseFiles()
	var known []uint64
	for i := range uint64(100) {
		known = append(known, table.Start+i*64)
	}
	c.Expect("a", &opener{path: path, owner: Owner{UID: 2}}, known)
	c.CloseFiles()
	lines := linesOf(c, "a")
	require.Len(t, lines.byAddress, len(known))
	asked := len(known)
	for wave := range uint64(waves) {
		var flood []uint64
		for i := range uint64(addresses) {
			flood = append(flood, table.Start+i*((table.Limit-table.Start)/addresses)+wave+1)
		}
		c.Expect("a", &opener{path: path, owner: Owner{UID: 1}}, flood)
		asked += len(flood)
		for _, vaddr := range known {
			_, ok := lines.byAddress[vaddr]
			require.True(t, ok)
		}
		sum := 0
		for _, line := range lines.byAddress {
			sum += line.bytes()
		}
		require.Equal(t, sum, lines.bytes)
		require.Equal(t, sum, lines.users[1]+lines.users[2])
		require.LessOrEqual(t, sum, maxGoLineBytes)
	}
	require.Less(t, len(lines.byAddress), asked, "more than there is room for")
	c.counted(t)
}

// Who has most makes room, also where that is many users together.
func TestLineSetRoom(t *testing.T) {
	var s lineSet
	vaddr := uint64(0)
	fill := func(uid uint32, bytes int) {
		line := goLine{frames: []Frame{{Name: string(make([]byte, bytes-goLineBytes-frameBytes))}}, uid: uid}
		s.add(vaddr, line)
		vaddr++
	}
	fill(1, 1<<20)
	fill(2, 3<<20-1<<10)
	require.Zero(t, s.makeRoom(1<<10))
	require.Equal(t, 3<<20-1<<10, s.makeRoom(2<<10))
	require.Equal(t, map[uint32]int{1: 1 << 20}, s.users)
	for uid := uint32(10); s.bytes+1<<10 <= maxGoLineBytes; uid++ {
		fill(uid, 1<<10)
	}
	require.Equal(t, 1<<20, s.makeRoom(1<<10))
	for uid := uint32(10_000); s.bytes+1<<10 <= maxGoLineBytes; uid++ {
		fill(uid, 1<<10)
	}
	require.Equal(t, lineStep, s.makeRoom(1), "of many at once")
	require.Len(t, s.byAddress, len(s.users))
	left := s.bytes
	require.Equal(t, left, s.makeRoom(2*maxGoLineBytes))
	require.Empty(t, s.byAddress)
	require.Zero(t, s.bytes)
}

// A user for whom a program takes all the time that he has leaves some to others.
func TestLinesWaitShares(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	synctest.Test(t, func(t *testing.T) {
		c := NewCache[string](CacheOptions{Wait: 8 * time.Second})
		share := c.fileWait() / lineWaitShare
		c.Lookup(nil, "a", &opener{path: path, owner: Owner{UID: 2}}, 0) // which reads the file, but no line
		first := &opener{path: path, owner: Owner{UID: 1}, delay: 50 * time.Millisecond}
		var vaddrs []uint64
		for i := range uint64(maxExpected) {
			vaddrs = append(vaddrs, table.Start+i*(table.Limit-table.Start)/maxExpected)
		}
		began := time.Now()
		c.Expect("a", first, vaddrs)
		for _, vaddr := range vaddrs {
			c.Lookup(nil, "a", first, vaddr)
		}
		require.Equal(t, share, time.Since(began))
		frames, _ := c.Lookup(nil, "a", &opener{path: path, owner: Owner{UID: 2}}, table.Limit-1)
		require.NotEmpty(t, frames)
		c.mu.Lock()
		require.Less(t, len(linesOf(c, "a").byAddress), maxExpected)
		c.mu.Unlock()
		c.CloseFiles()
		time.Sleep(time.Minute)
	})
}

// A program that cannot be opened, or read, through one owner's processes is read through another's.
func TestLinesFault(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	for _, other := range []Owner{{UID: 2}, {UID: 1, Container: "other"}} {
		for name, bad := range map[string]Source{
			"opened": &opener{path: "/no/such", owner: Owner{UID: 1}},
			"read":   &replaced{opener: opener{path: path, owner: Owner{UID: 1}}},
		} {
			c := NewCache[string](CacheOptions{Wait: time.Minute})
			mine := &opener{path: path, owner: other}
			named := func(file Source, at uint64) bool {
				frames, _ := c.Lookup(nil, "a", file, table.Start+at)
				return len(frames) > 0
			}
			require.True(t, named(mine, 0))
			c.CloseFiles()
			for at := range uint64(3) {
				require.False(t, named(bad, 1000+at), name)
			}
			require.EqualValues(t, 1, c.Stats().Failures, "it is not tried again in this batch")
			require.True(t, named(mine, 2000), name)
			c.CloseFiles()
			require.False(t, named(bad, 3000))
			require.EqualValues(t, 2, c.Stats().Failures, "but in the next one")
			c.CloseFiles()
			require.NoError(t, c.Close(t.Context()))
			c.counted(t)
		}
	}
}

// fading is a file that becomes another one.
type fading struct {
	opener
	gone atomic.Bool
}

type fadingContents struct {
	Contents
	of *fading
}

func (f *fading) Open() (Contents, int64, error) {
	contents, size, err := f.opener.Open()
	return fadingContents{contents, f}, size, err
}

func (c fadingContents) ReadAt(p []byte, off int64) (int, error) {
	if c.of.gone.Load() {
		return 0, procfs.ErrReplaced
	}
	return c.Contents.ReadAt(p, off)
}

// Where a program is open through the process of one owner and cannot be read any more, another one who asks has it
// opened through his own.
func TestLinesFaultOfOpenFile(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	c := NewCache[string](CacheOptions{Wait: time.Minute})
	first := &fading{opener: opener{path: path, owner: Owner{UID: 1}}}
	second := &opener{path: path, owner: Owner{UID: 2}}
	frames, _ := c.Lookup(nil, "a", first, table.Start)
	require.NotEmpty(t, frames)
	first.gone.Store(true)
	frames, _ = c.Lookup(nil, "a", second, table.Limit-1)
	require.NotEmpty(t, frames)
	require.EqualValues(t, 1, second.opens.Load())
	require.EqualValues(t, 1, c.Stats().Failures)
	c.CloseFiles()
	require.NoError(t, c.Close(t.Context()))
	c.counted(t)
}

// Who has waited for files that hang as long as he may takes no program's lines from others.
func TestLinesOwnWaitUsedUp(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	synctest.Test(t, func(t *testing.T) {
		const wait = 800 * time.Millisecond
		c := NewCache[string](CacheOptions{Wait: wait})
		first, second := Owner{UID: 1}, &opener{path: path, owner: Owner{UID: 2}}
		frames, _ := c.Lookup(nil, "a", second, table.Start)
		require.NotEmpty(t, frames)
		hangs, began := make(chan struct{}), time.Now()
		for _, key := range []string{"b", "c", "d"} {
			c.Lookup(nil, key, &opener{path: path, wait: hangs, owner: first}, 0)
		}
		require.Equal(t, wait/userWaitShare, time.Since(began))
		frames, _ = c.Lookup(nil, "a", &opener{path: path, owner: first}, table.Start+1000)
		require.Empty(t, frames)
		frames, _ = c.Lookup(nil, "a", second, table.Start+2000)
		require.NotEmpty(t, frames)
		close(hangs)
		c.CloseFiles()
		require.NoError(t, c.Close(t.Context()))
	})
}
