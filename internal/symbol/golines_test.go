package symbol

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// goProgram returns a program of testdata/gopclntab and its table.
func goProgram(t testing.TB, name string) (path string, table gopclntab.Table, r *gopclntab.Reader) {
	t.Helper()
	for _, p := range testutil.BuildGoTables(t) {
		if filepath.Base(p) != name {
			continue
		}
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		f, err := elffile.New(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		table, err := gopclntab.Find(f)
		require.NoError(t, err)
		return p, table, gopclntab.NewReader(table, bytes.NewReader(data))
	}
	require.Fail(t, "no "+name)
	return "", gopclntab.Table{}, nil
}

// inlinedAt returns an address at which functions are inlined.
func inlinedAt(t testing.TB, table gopclntab.Table, r *gopclntab.Reader) (uint64, []gopclntab.Frame) {
	for pc := table.Limit - 1; pc > table.Start; pc-- {
		frames, err := r.Frames(nil, pc)
		require.NoError(t, err)
		if len(frames) >= 3 && strings.HasPrefix(frames[0].Function, "main.innermost") {
			return pc, frames
		}
	}
	require.Fail(t, "nothing is inlined")
	return 0, nil
}

func TestGoFrames(t *testing.T) {
	for _, name := range []string{"tables-static", "tables-pie-stripped", "tables-cgopie-stripped", "cross-cgo"} {
		path, table, r := goProgram(t, name)
		vaddr, want := inlinedAt(t, table, r)
		o := &opener{path: path}
		c := NewCache[string](CacheOptions{Wait: time.Minute})
		for range 3 {
			frames, language := c.Lookup(nil, "a", o, vaddr)
			require.Equal(t, Go, language)
			require.Len(t, frames, len(want))
			for i, f := range want {
				require.Equal(t, Frame{f.Function, f.File, f.Line, f.StartLine}, frames[i])
			}
		}
		require.EqualValues(t, 2, o.opens.Load(), "once for all, once for lines")
		to := make([]Frame, 0, 16)
		require.Zero(t, testing.AllocsPerRun(10, func() { c.Lookup(to, "a", o, vaddr) }))
		require.Len(t, c.open, 1)
		c.CloseFiles()
		require.Empty(t, c.open)
		c.Lookup(nil, "a", o, table.Start)
		require.EqualValues(t, 3, o.opens.Load(), "opened again")
		c.CloseFiles()
		require.Zero(t, c.Stats().Failures)
	}
}

// C code in a Go program has symbols, Go code has none taken from them.
func TestGoAndC(t *testing.T) {
	path, table, r := goProgram(t, "tables-cgo")
	f, e := open(t, path)
	defer f.Close()
	l := loader{src: &opener{path: path}, packed: newRoom(packedLimits()), tables: newRoom(tableLimits()), maxBytes: 16 << 20}
	known, err := l.load()
	require.NoError(t, err)
	require.True(t, known.isGo)
	c := NewCache[int](CacheOptions{Wait: time.Minute})
	defer c.CloseFiles()
	found := false
	require.NoError(t, e.StaticFunctions(func(fn elffile.Function) bool {
		name := string(fn.Name)
		frames, language := c.Lookup(nil, 1, l.src, fn.Value)
		if table.Contains(fn.Value) {
			want, err := r.Frames(nil, fn.Value)
			require.NoError(t, err)
			require.Len(t, frames, len(want), name)
		} else if name == "_start" {
			found = true
			require.Equal(t, []Frame{{Name: "_start"}}, frames)
			require.Equal(t, Native, language)
		}
		return true
	}))
	require.True(t, found)
}

// What is kept of addresses counts, and is bounded.
func TestGoFramesBounded(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	o := &opener{path: path}
	c := NewCache[string](CacheOptions{Wait: time.Minute, MaxBytes: 8 << 20})
	before := 0
	for pc := table.Start; pc < table.Limit; pc += 7 {
		c.Lookup(nil, "a", o, pc)
		s := c.Stats()
		require.Less(t, s.Bytes, maxGoLineBytes+(1<<20))
		before = max(before, s.Bytes)
	}
	c.CloseFiles()
	require.Greater(t, before, maxGoLineBytes/2)
	c.mu.Lock()
	c.drop(c.byKey[cacheKey[string]{file: "a"}])
	c.mu.Unlock()
	require.Zero(t, c.Stats().Bytes)
}

// stuck is a file whose reads never end, once it is known.
type stuck struct {
	opener
	wait chan struct{}
}

func (s *stuck) Open() (Contents, int64, error) {
	f, size, err := s.opener.Open()
	if s.opens.Load() > 1 {
		return stuckContents{f, s.wait}, size, err
	}
	return f, size, err
}

type stuckContents struct {
	Contents
	wait chan struct{}
}

func (s stuckContents) ReadAt([]byte, int64) (int, error) {
	<-s.wait
	return 0, os.ErrClosed
}

// A file that stops answering costs one wait a batch, and not one an address.
func TestGoFramesStuck(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	synctest.Test(t, func(t *testing.T) { goFramesStuck(t, path, table.Start) })
}

// goFramesStuck runs where time passes when all that is left to do is to wait.
func goFramesStuck(t *testing.T, path string, start uint64) {
	const wait = 300 * time.Millisecond
	s := &stuck{opener{path: path}, make(chan struct{})}
	c := NewCache[string](CacheOptions{Wait: wait})
	began := time.Now()
	for pc := range uint64(1000) {
		frames, _ := c.Lookup(nil, "a", s, start+pc)
		require.Empty(t, frames)
	}
	require.Equal(t, wait/waitShare/lineWaitShare, time.Since(began))
	require.EqualValues(t, 1000, c.Stats().TimedOut)
	c.CloseFiles()
	began = time.Now()
	c.Lookup(nil, "a", s, start)
	require.Zero(t, time.Since(began), "it is still being read, and not waited for again")
	close(s.wait)
	synctest.Wait()
	require.Empty(t, c.open, "it is closed")
	require.EqualValues(t, 1, c.Stats().Failures)
	c.Lookup(nil, "a", s, start)
	require.EqualValues(t, 1, c.Stats().Failures, "it is not read again in this batch")
	c.CloseFiles()
	require.Empty(t, c.open)
	c.Lookup(nil, "a", s, start)
	require.EqualValues(t, 2, c.Stats().Failures, "but in the next one")
	c.CloseFiles()
}

// Lines are read when there is CPU time for it, by what accounts for that.
func TestGoFramesBusy(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	busy, works := false, 0
	c := NewCache[string](CacheOptions{
		Wait: time.Minute,
		Busy: func(uint32) bool { return busy },
		Work: func(_ uint32, read func()) { works++; read() },
	})
	defer c.CloseFiles()
	o := &opener{path: path}
	named := func(vaddr uint64) bool {
		frames, _ := c.Lookup(nil, "a", o, vaddr)
		return len(frames) > 0
	}
	require.True(t, named(table.Start))
	require.Equal(t, 2, works, "the file and the address")
	busy = true
	c.Expect("a", o, []uint64{table.Limit - 1})
	require.Zero(t, c.Stats().Refused)
	require.True(t, named(table.Start), "it is known")
	require.False(t, named(table.Limit-1))
	require.Equal(t, 2, works)
	require.EqualValues(t, 1, c.Stats().Refused)
	busy = false
	require.True(t, named(table.Limit-1), "later")
	require.Equal(t, 3, works)
}

// What is expected is read together, and is what is read one by one.
func TestExpect(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	const addresses, step = 2*maxExpected + 7, 48
	vaddrs := []uint64{table.Start - 1}
	for i := range uint64(addresses) {
		vaddrs = append(vaddrs, table.Start+i*step)
	}
	vaddrs = append(vaddrs, table.Limit)
	works := 0
	c := NewCache[string](CacheOptions{Wait: time.Minute, Work: func(_ uint32, read func()) { works++; read() }})
	alone := NewCache[string](CacheOptions{Wait: time.Minute})
	defer alone.CloseFiles()
	o := &opener{path: path}
	c.Expect("a", o, vaddrs)
	require.Equal(t, 4, works, "the file and three parts of the addresses")
	require.Len(t, c.open, 1)
	lines := c.open[0]
	require.Len(t, lines.byAddress, addresses, "not those outside of the table")
	for _, vaddr := range vaddrs {
		frames, language := c.Lookup(nil, "a", o, vaddr)
		want, of := alone.Lookup(nil, "a", &opener{path: path}, vaddr)
		require.Equal(t, want, frames)
		require.Equal(t, of, language)
	}
	c.Expect("a", o, vaddrs)
	require.Equal(t, 4, works, "all is known")
	require.EqualValues(t, 2, o.opens.Load())
	require.Zero(t, c.Stats().TimedOut)

	more := maxGoLineBytes - expectedBytes - lines.bytes
	lines.bytes, lines.users[0] = lines.bytes+more, lines.users[0]+more
	c.grow(c.byKey[cacheKey[string]{file: "a"}].Value.(*cached[string]), more)
	c.Expect("a", o, []uint64{table.Limit - 1})
	require.Len(t, lines.byAddress, addresses+1, "there is room for what is expected")
	c.Expect("a", o, []uint64{table.Limit - 2, table.Limit - 3})
	require.Len(t, lines.byAddress, 2, "room was made")
	reader := lines.file.reader
	require.NotZero(t, reader.Bytes()/(8<<10))
	c.CloseFiles()
	require.Less(t, reader.Bytes(), 8<<10, "its pages are given back")
}

// Each address counts once it is read: who waits may not wait for all of them.
func TestExpectLate(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	synctest.Test(t, func(t *testing.T) {
		o := &opener{path: path}
		c := NewCache[string](CacheOptions{Wait: 8 * time.Second})
		c.Lookup(nil, "a", o, 0) // which reads the file, but no line
		o.delay = 100 * time.Millisecond
		var vaddrs []uint64
		for i := range uint64(maxExpected) {
			vaddrs = append(vaddrs, table.Start+i*(table.Limit-table.Start)/maxExpected)
		}
		c.Expect("a", o, vaddrs)
		named := 0
		for _, vaddr := range vaddrs {
			frames, _ := c.Lookup(nil, "a", o, vaddr)
			named += min(len(frames), 1)
		}
		require.NotZero(t, named)
		require.Less(t, named, maxExpected)
		c.CloseFiles()
		time.Sleep(time.Minute)
	})
}

// A file that cannot be read any more is not asked for the rest.
func TestExpectFails(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	o := &opener{path: path}
	c := NewCache[string](CacheOptions{Wait: time.Minute})
	c.Lookup(nil, "a", o, 0) // which reads the file, but no line
	o.path = "/no/such"
	c.Expect("a", o, []uint64{table.Start, table.Start + 64, table.Start + 128})
	require.EqualValues(t, 1, c.Stats().Failures)
}

// Of other files nothing is read that is expected.
func TestExpectOther(t *testing.T) {
	works := 0
	c := NewCache[string](CacheOptions{Wait: time.Minute, Work: func(_ uint32, read func()) { works++; read() }})
	c.Expect("a", &opener{path: "/bin/true"}, []uint64{1, 2, 3})
	c.Expect("b", &opener{path: "/no/such"}, []uint64{1, 2, 3})
	require.Equal(t, 2, works, "the files")
}

// Many ask for the same addresses.
func TestGoFramesConcurrent(t *testing.T) {
	path, table, r := goProgram(t, "tables-static")
	o := &opener{path: path}
	c := NewCache[string](CacheOptions{Wait: time.Minute})
	const addresses, step = 200, 64
	done := make(chan string)
	for range 4 {
		go func() {
			var all strings.Builder
			for i := range uint64(addresses) {
				frames, _ := c.Lookup(nil, "a", o, table.Start+i*step)
				for _, f := range frames {
					all.WriteString(f.Name)
				}
				if i%50 == 0 {
					c.CloseFiles()
				}
			}
			done <- all.String()
		}()
	}
	var want strings.Builder
	for i := range uint64(addresses) {
		frames, err := r.Frames(nil, table.Start+i*step)
		require.NoError(t, err)
		for _, f := range frames {
			want.WriteString(f.Function)
		}
	}
	for range 4 {
		require.Equal(t, want.String(), <-done)
	}
	require.Eventually(t, func() bool {
		runtime.Gosched()
		c.CloseFiles()
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.open) == 0
	}, time.Minute, time.Millisecond)
}
