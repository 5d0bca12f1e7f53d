package symbol

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// opener counts how often a path is opened, and can be made to wait.
type opener struct {
	path  string
	root  string // of OpenPath
	opens atomic.Int32
	wait  chan struct{}
	owner Owner
	delay time.Duration // of each read
}

// slow takes its time for each read.
type slow struct {
	*os.File
	delay time.Duration
}

func (s slow) ReadAt(b []byte, off int64) (int, error) {
	time.Sleep(s.delay)
	return s.File.ReadAt(b, off)
}

func (o *opener) Owner() Owner { return o.owner }

func (o *opener) Path() string { return o.path }

func (o *opener) OpenPath(root Root, path string) (Contents, int64, error) {
	if root == HostRoot {
		return nil, 0, os.ErrNotExist
	}
	return (&opener{path: o.root + path}).Open()
}

func (o *opener) Open() (Contents, int64, error) {
	o.opens.Add(1)
	if o.wait != nil {
		<-o.wait
	}
	f, err := os.Open(o.path)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	if o.delay > 0 {
		return slow{f, o.delay}, st.Size(), nil
	}
	return f, st.Size(), nil
}

// lookup returns the only function at an address.
func lookup[K comparable](c *Cache[K], key K, src Source, vaddr uint64) (fn Frame, ok bool) {
	var frames [1]Frame
	if found, _ := c.Lookup(frames[:0], key, src, vaddr); len(found) == 1 {
		return found[0], true
	}
	return Frame{}, false
}

func vaddrOf(t *testing.T, path, name string) uint64 {
	t.Helper()
	f, e := open(t, path)
	defer f.Close()
	s, ok, err := e.DynamicSymbol(name)
	require.NoError(t, err)
	require.True(t, ok)
	return s.Value
}

func TestCache(t *testing.T) {
	o := &opener{path: build(t)}
	vaddr := vaddrOf(t, o.path, "visible")
	c := NewCache[string](CacheOptions{Wait: time.Minute})
	for range 3 {
		fn, ok := lookup(c, "a", o, vaddr)
		require.True(t, ok)
		require.Equal(t, "visible", fn.Name)
	}
	_, ok := lookup(c, "a", o, 0)
	require.False(t, ok)
	require.EqualValues(t, 1, o.opens.Load())
	s := c.Stats()
	require.EqualValues(t, 1, s.Loads)
	require.Equal(t, 1, s.Files)
	require.GreaterOrEqual(t, s.Bytes, minTableBytes)
	require.Zero(t, testing.AllocsPerRun(10, func() { lookup(c, "a", o, vaddr) }))
}

func TestCacheBounded(t *testing.T) {
	o := &opener{path: build(t)}
	vaddr := vaddrOf(t, o.path, "visible")
	c := NewCache[int](CacheOptions{Wait: time.Minute, MaxBytes: 4 * minTableBytes})
	for i := range 20 {
		_, ok := lookup(c, i, o, vaddr)
		require.True(t, ok)
		lookup(c, 0, o, vaddr) // used all the time
	}
	require.LessOrEqual(t, c.Stats().Bytes, 4*minTableBytes)
	require.EqualValues(t, 20, o.opens.Load())

	small := NewCache[int](CacheOptions{Wait: time.Minute, MaxBytes: 100})
	lookup(small, 1, o, vaddr)
	lookup(small, 2, o, vaddr)
	s := small.Stats()
	require.Equal(t, 1, s.Files, "the last one is always kept")
	require.EqualValues(t, 2, s.Truncated)
}

func TestCacheFailure(t *testing.T) {
	now := time.Now()
	path := filepath.Join(t.TempDir(), "late")
	o := &opener{path: path}
	c := NewCache[int](CacheOptions{Wait: time.Minute, Now: func() time.Time { return now }})
	for range 3 {
		_, ok := lookup(c, 1, o, 0)
		require.False(t, ok)
	}
	require.EqualValues(t, 1, o.opens.Load())
	require.EqualValues(t, 1, c.Stats().Failures)

	lib := build(t)
	require.NoError(t, os.Rename(lib, path))
	now = now.Add(retryAfter)
	_, ok := lookup(c, 1, o, vaddrOf(t, path, "visible"))
	require.True(t, ok, "tried again")

	require.NoError(t, os.WriteFile(path, []byte("no ELF file"), 0o644))
	_, ok = lookup(c, 2, o, 0)
	require.False(t, ok)
}

// A file that cannot be opened through one owner's process is opened through another's at
// once; what it says holds for all.
func TestCacheClosedForOne(t *testing.T) {
	now := time.Now()
	path := build(t)
	vaddr := vaddrOf(t, path, "visible")
	c := NewCache[int](CacheOptions{Wait: time.Minute, Now: func() time.Time { return now }})
	gone := filepath.Join(t.TempDir(), "gone")
	var hostile []*opener
	for i := range 2 * maxRefusals {
		o := &opener{path: gone, owner: Owner{UID: uint32(i % 2), Container: strconv.Itoa(i)}}
		for range 3 {
			_, ok := lookup(c, 1, o, vaddr)
			require.False(t, ok)
		}
		require.EqualValues(t, 1, o.opens.Load(), "once a minute")
		hostile = append(hostile, o)
	}
	last := hostile[len(hostile)-1]
	now = now.Add(retryAfter)
	lookup(c, 1, last, vaddr)
	require.EqualValues(t, 2, last.opens.Load())
	closed := len(c.byKey[cacheKey[int]{file: 1}].Value.(*cached[int]).refusals)
	require.LessOrEqual(t, closed, maxRefusals)
	require.Equal(t, minTableBytes+closed*refusalBytes, c.Stats().Bytes)

	for _, o := range []*opener{{path: path, owner: Owner{UID: 1000}}, last} {
		_, ok := lookup(c, 1, o, vaddr)
		require.True(t, ok)
	}
	require.EqualValues(t, 2, last.opens.Load())

	require.NoError(t, os.WriteFile(gone, []byte("no ELF file"), 0o644))
	for i := range 3 {
		_, ok := lookup(c, 2, hostile[i], vaddr)
		require.False(t, ok)
	}
	require.EqualValues(t, 2, hostile[0].opens.Load())
	require.EqualValues(t, 1, hostile[1].opens.Load(), "the same for all")
}

// While a file is being opened through one owner's process, another waits, and has it opened
// through his own when that fails.
func TestCacheClosedMeanwhile(t *testing.T) {
	path := build(t)
	vaddr := vaddrOf(t, path, "visible")
	synctest.Test(t, func(t *testing.T) {
		c := NewCache[int](CacheOptions{Wait: time.Hour})
		wait := make(chan struct{})
		go lookup(c, 1, &opener{path: "/nowhere", wait: wait, owner: Owner{UID: 1}}, vaddr)
		synctest.Wait()
		found := make(chan bool)
		go func() {
			_, ok := lookup(c, 1, &opener{path: path, owner: Owner{UID: 2}}, vaddr)
			found <- ok
		}()
		synctest.Wait()
		close(wait)
		require.True(t, <-found)
	})
}

// TestCacheHangs has files that never open.
func TestCacheHangs(t *testing.T) {
	path := build(t)
	synctest.Test(t, func(t *testing.T) { cacheHangs(t, path) })
}

// cacheHangs runs where time passes when all that is left to do is to wait.
func cacheHangs(t *testing.T, path string) {
	wait := make(chan struct{})
	vaddr := vaddrOf(t, path, "visible")
	blocked := true
	c := NewCache[int](CacheOptions{Wait: 20 * time.Millisecond, MaxBytes: minTableBytes, blocked: func(int) bool { return blocked }})
	began := time.Now()
	hostile := Owner{UID: 1, PID: 42}
	look := func(from, to int) {
		for i := from; i < to; i++ {
			for range 10 {
				_, ok := lookup(c, i, &opener{path: path, wait: wait, owner: hostile}, 0)
				require.False(t, ok)
			}
		}
	}
	look(0, 1)
	require.Equal(t, 5*time.Millisecond, time.Since(began), "one wait a file")
	look(1, maxOwnerReads)
	require.Equal(t, 10*time.Millisecond, time.Since(began), "of all files of a user together")
	c.CloseFiles()
	time.Sleep(c.fileWait())
	began = time.Now()
	look(0, maxOwnerReads)
	require.Zero(t, time.Since(began), "they are not waited for again")
	s := c.Stats()
	require.EqualValues(t, maxOwnerReads, s.Loads, "nor opened again, though there is no room for them")
	require.EqualValues(t, 10*(2*maxOwnerReads), s.TimedOut)
	require.Zero(t, s.Refused)
	_, ok := lookup(c, -1, &opener{path: path, owner: hostile}, vaddr)
	require.False(t, ok)
	require.EqualValues(t, 1, c.Stats().Refused)
	for i, owner := range []Owner{{UID: 2}, {UID: 1, Container: "other"}} {
		_, ok = lookup(c, -2-i, &opener{path: path, owner: owner}, vaddr)
		require.True(t, ok, "of somebody else")
	}
	look(0, maxOwnerReads)
	require.EqualValues(t, 1, c.Stats().Refused, "those that hang are not forgotten for others")

	require.Empty(t, c.Hung())
	time.Sleep(hungAfter)
	blocked = false
	require.Zero(t, c.Stats().Hanging, "who reads waits for a CPU")
	require.Empty(t, c.Hung())
	blocked = true
	require.Equal(t, maxOwnerReads, c.Stats().Hanging)
	hung := c.Hung()
	require.Len(t, hung, maxOwnerReads)
	require.Equal(t, Hung{Owner: hostile, Name: path}, hung[0])
	require.Empty(t, c.Hung(), "each is told once")
	close(wait)
	synctest.Wait()
	require.Zero(t, c.Stats().Hanging)
	require.Equal(t, 1, c.Stats().Files)
	_, ok = lookup(c, 0, &opener{path: path, owner: hostile}, vaddr)
	require.True(t, ok)
	require.Empty(t, c.reading.now)
	require.Empty(t, c.reading.users)
	require.Empty(t, c.reading.owners)
}

// Users and containers that are many take no more than a number of places together.
func TestReadingBounds(t *testing.T) {
	r := newReading(&CacheOptions{Now: time.Now})
	reads := func(uid uint32, containers int) (n int) {
		for i := range containers {
			for r.begin(Owner{UID: uid, Container: strconv.Itoa(i)}, "") != nil {
				n++
			}
		}
		return n
	}
	require.Equal(t, maxOwnerReads, reads(1, 1))
	require.Equal(t, maxUserReads-maxOwnerReads, reads(1, 100))
	for uid := range uint32(100) {
		reads(uid+2, 100)
	}
	require.Len(t, r.now, maxReads)
}

// replaced is a file that becomes another one while it is read.
type replaced struct {
	opener
	bytes int64 // that can be read
}

func (r *replaced) Open() (Contents, int64, error) {
	file, size, err := r.opener.Open()
	return &replacedContents{file, r.bytes}, size, err
}

type replacedContents struct {
	Contents
	bytes int64
}

func (r *replacedContents) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > r.bytes {
		return 0, procfs.ErrReplaced
	}
	return r.Contents.ReadAt(p, off)
}

// What was read of a file that another container has replaced meanwhile is nothing to others.
func TestReplacedWhileRead(t *testing.T) {
	path := build(t)
	f, e := open(t, path)
	defer f.Close()
	whole, err := newTable(e, 1<<20)
	require.NoError(t, err)
	st, err := f.Stat()
	require.NoError(t, err)
	vaddr := whole.start(whole.Len() - 1)
	for bytes := int64(0); bytes < st.Size(); bytes += st.Size() / 50 {
		c := NewCache[int](CacheOptions{Wait: time.Minute})
		_, _ = c.Lookup(nil, 1, &replaced{opener{path: path, owner: Owner{UID: 1}}, bytes}, vaddr)
		frames, _ := c.Lookup(nil, 1, &opener{path: path, owner: Owner{UID: 2}}, vaddr)
		require.Len(t, frames, 1, "%d bytes", bytes)
	}
}
