package symbol

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is held of files has a bound, and each user and container a share of it.
func TestRoom(t *testing.T) {
	for _, limits := range []roomLimits{mapLimits(), packedLimits(), tableLimits()} {
		require.LessOrEqual(t, 4*limits.user, limits.all, "three users leave room for others")
		r := newRoom(limits)
		fill := func(uid uint32, container string) (f *fileRoom, taken int) {
			f = r.begin(Owner{UID: uid, Container: container})
			for f.has(limits.free + taken + 1) {
				taken += roomStep
			}
			return f, taken
		}
		first, taken := fill(1, "a")
		require.Equal(t, limits.place, taken)
		second, taken := fill(1, "a")
		require.Zero(t, taken, "another of that container")
		third, taken := fill(1, "b")
		require.Equal(t, limits.user-limits.place, taken)
		fourth, taken := fill(1, "c")
		require.Zero(t, taken, "another of that user")
		files := []*fileRoom{second, third, fourth}
		uid := uint32(2)
		for left := limits.all - limits.user; left > 0; uid++ {
			file, taken := fill(uid, "")
			require.Equal(t, limits.place, taken)
			files = append(files, file)
			left -= taken
		}
		last, taken := fill(uid, "")
		require.Zero(t, taken)
		require.True(t, last.has(limits.free))
		first.end()
		require.True(t, second.has(limits.free+limits.place), "all at once")
		require.False(t, last.has(limits.free+1))
		for _, f := range append(files, last) {
			f.end()
		}
		require.Empty(t, r.users)
		require.Empty(t, r.places)
		require.Zero(t, r.taken)
	}
}

// The largest file has room as long as nobody else needs any.
func TestRoomForLargest(t *testing.T) {
	for most, limits := range map[int]roomLimits{maxPackedBytes: packedLimits(), defaultMaxTableBytes: tableLimits()} {
		f := newRoom(limits).begin(Owner{})
		require.True(t, f.has(most))
	}
}

// A map for which there is no room is read as far as there is, and on with the next batch.
func TestPerfMapWithoutRoom(t *testing.T) {
	g := &growing{now: time.Now()}
	const functions = 20_000
	var text strings.Builder
	for i := range functions {
		text.WriteString(hexText(uint64(i)*16) + " 10 f" + hexText(uint64(i)) + "\n")
	}
	g.write(text.String())
	c := NewPerfMaps[int](CacheOptions{Wait: time.Minute, Now: func() time.Time { return g.now }})
	last := func() bool {
		frames, _ := c.Lookup(nil, 1, g, (functions-1)*16, Native)
		return len(frames) > 0
	}
	hangs := c.room.begin(g.Owner())
	for bytes := 0; hangs.has(bytes); {
		bytes += roomStep
	}
	require.False(t, last())
	require.EqualValues(t, 1, c.Stats().Refused)
	require.Zero(t, c.Stats().Truncated)
	c.Refresh()
	require.False(t, last(), "a piece more")
	require.Greater(t, g.reads, int64(mapLimits().free))
	hangs.end()
	c.Refresh()
	require.True(t, last())
	require.EqualValues(t, 2, c.Stats().Refused)
	require.Equal(t, functions, len(c.byKey[1].Value.(*mapped[int]).current.functions.list))
	require.Empty(t, c.room.users)
}

// closing tells when it is closed.
type closing struct {
	io.ReaderAt
	closed chan struct{}
}

func (c closing) Close() error { close(c.closed); return nil }

// One map is merged at a time, and when that takes place nothing is asked of its file.
func TestPerfMapsMergeAlone(t *testing.T) {
	r := newRoom(mapLimits())
	var now, most atomic.Int32
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			n := r.begin(Owner{UID: uint32(i % 2), Container: strconv.Itoa(i % 3)})
			defer n.end()
			n.alone(func() {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Millisecond)
				now.Add(-1)
			})
		})
	}
	all.Wait()
	require.EqualValues(t, 1, most.Load())

	g := &growing{now: time.Now()}
	g.write("100 10 a\n")
	file := g.open()
	closed := make(chan struct{})
	file.Contents = closing{file.Contents, closed}
	r.turn.Lock()
	named := make(chan string)
	go func() {
		n := r.begin(Owner{})
		defer n.end()
		m, err := newPerfMap(maxMapBytes).update(file, g.now, n)
		if err != nil {
			named <- err.Error()
			return
		}
		named <- nameAt(m, 0x100)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		require.Fail(t, "the file is open while it waits")
	}
	select {
	case <-named:
		require.Fail(t, "merged beside another")
	case <-time.After(20 * time.Millisecond):
	}
	r.turn.Unlock()
	require.Equal(t, "a", <-named)
}

// What many overlapping functions are cut into is not more than is kept.
func TestSweepBounded(t *testing.T) {
	s := sweep{}
	for i := range 1000 {
		s.claims = append(s.claims, claim{start: uint64(i), size: uint32(2000 - 2*i), order: int32(i)})
	}
	s.run(100)
	require.Len(t, s.out, 100)
}
