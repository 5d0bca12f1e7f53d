package symbol

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// growing is a perf map in memory.
type growing struct {
	data  []byte
	inode uint64
	mtime int64
	now   time.Time
	reads int64 // bytes
	fails int   // which read fails, from 1
}

func (g *growing) write(text string) { g.data, g.mtime = append(g.data, text...), g.mtime+1 }

func (g *growing) replace(text string) { g.data, g.mtime = []byte(text), g.mtime+1 }

func (g *growing) open() MapFile {
	id := procfs.FileID{Dev: 1, Inode: g.inode, CtimeNs: g.mtime, Size: int64(len(g.data))}
	return MapFile{growingContents{g, bytes.NewReader(g.data)}, id}
}

type growingContents struct {
	g *growing
	io.ReaderAt
}

func (c growingContents) ReadAt(b []byte, off int64) (int, error) {
	if c.g.fails--; c.g.fails == 0 {
		return 0, unix.EIO
	}
	n, err := c.ReaderAt.ReadAt(b, off)
	c.g.reads += int64(n)
	return n, err
}

func (growingContents) Close() error { return nil }

// OpenMap makes it a MapSource.
func (g *growing) OpenMap() (MapFile, error) { return g.open(), nil }

// Owner implements MapSource.
func (g *growing) Owner() Owner { return Owner{UID: 2} }

func nameAt(m *perfMap, addr uint64) string {
	frames, _ := m.lookup(nil, addr, Native)
	if len(frames) == 0 {
		return ""
	}
	return frames[0].Name
}

// roomFor returns that of a map while nothing else is read.
func roomFor() *fileRoom { return newRoom(mapLimits()).begin(Owner{}) }

// What is appended is read alone, and counts from then on.
func TestPerfMapGrows(t *testing.T) {
	g := &growing{now: time.Now()}
	m := newPerfMap(maxMapBytes)
	update := func() {
		var err error
		m, err = m.update(g.open(), g.now, roomFor())
		require.NoError(t, err)
	}
	for i := range 2000 {
		g.write("10" + strings.Repeat("0", i%3) + " 8 old\n")
	}
	update()
	require.Equal(t, "old", nameAt(m, 0x107))
	require.Empty(t, nameAt(m, 0x108))
	g.write("104 8 new")
	update()
	require.Equal(t, "old", nameAt(m, 0x104), "the line may go on")
	before := g.reads
	g.write("er\n")
	update()
	require.Less(t, g.reads-before, int64(5*probeBytes))
	require.Equal(t, "newer", nameAt(m, 0x104))
	require.Equal(t, "newer", nameAt(m, 0x10b))
	require.Equal(t, "old", nameAt(m, 0x103))
	before = g.reads
	update()
	require.Equal(t, before, g.reads, "nothing is new")
}

// A map that was written anew is read anew, but not all the time.
func TestPerfMapReplaced(t *testing.T) {
	for what, replace := range map[string]func(g *growing){
		"shorter":         func(g *growing) { g.replace("200 10 b\n") },
		"longer":          func(g *growing) { g.replace(strings.Repeat("200 10 b\n", 100)) },
		"of equal length": func(g *growing) { g.replace("200 10 b\n200 10 b\n200 10 b\n") },
		"another file":    func(g *growing) { g.replace(strings.Repeat("100 10 a\n", 3) + "200 10 b\n"); g.inode++ },
	} {
		g := &growing{now: time.Now()}
		g.write(strings.Repeat("100 10 a\n", 3))
		m, err := newPerfMap(maxMapBytes).update(g.open(), g.now, roomFor())
		require.NoError(t, err)
		require.Equal(t, "a", nameAt(m, 0x100))
		replace(g)
		m, err = m.update(g.open(), g.now, roomFor())
		require.NoError(t, err)
		require.Empty(t, nameAt(m, 0x200), "not so soon: %s", what)
		m, err = m.update(g.open(), g.now.Add(rereadGap), roomFor())
		require.NoError(t, err)
		require.Equal(t, "b", nameAt(m, 0x200), what)
		require.Equal(t, what == "another file", nameAt(m, 0x100) == "a", what)
	}
}

// A line that never ends hides itself, and what is left of it is no line.
func TestPerfMapEndlessLine(t *testing.T) {
	g := &growing{now: time.Now()}
	m := newPerfMap(maxMapBytes)
	g.write("100 10 a\n")
	for range 20 {
		g.write(strings.Repeat("x", maxMapLine-9) + " 200 10 b")
		before := g.reads
		var err error
		m, err = m.update(g.open(), g.now, roomFor())
		require.NoError(t, err)
		require.Less(t, g.reads-before, int64(4*maxMapLine))
	}
	g.write("\n300 10 c\n")
	m, err := m.update(g.open(), g.now, roomFor())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "", "c"}, []string{nameAt(m, 0x100), nameAt(m, 0x200), nameAt(m, 0x300)})
	require.False(t, m.complete)
}

// More functions than are kept.
func TestPerfMapBounded(t *testing.T) {
	g := &growing{now: time.Now()}
	var text strings.Builder
	for i := range 400_000 {
		text.WriteString(strings.ToLower(strings.Repeat("0", 2)))
		text.WriteString(hexText(uint64(i) * 16))
		text.WriteString(" 10 function_with_some_name_")
		text.WriteString(hexText(uint64(i)))
		text.WriteByte('\n')
	}
	g.write(text.String())
	m := newPerfMap(maxMapBytes)
	for read := false; !read || m.late; read = true { // in pieces
		var err error
		m, err = m.update(g.open(), g.now, roomFor())
		require.NoError(t, err)
	}
	require.False(t, m.complete)
	require.LessOrEqual(t, m.functions.bytes(), maxMapBytes)
	require.Equal(t, "function_with_some_name_0", nameAt(m, 5))
}

func hexText(n uint64) string {
	const digits = "0123456789abcdef"
	text := ""
	for ; n > 0 || text == ""; n >>= 4 {
		text = string(digits[n&15]) + text
	}
	return text
}

func TestPerfMaps(t *testing.T) {
	g := &growing{now: time.Now()}
	g.write("100 10 JS:*a /x.js:3:1\n")
	c := NewPerfMaps[int](CacheOptions{Wait: time.Minute, Now: func() time.Time { return g.now }})
	at := func(addr uint64) string {
		frames, _ := c.Lookup(nil, 1, g, addr, Native)
		if len(frames) == 0 {
			return ""
		}
		return frames[0].Name
	}
	require.Equal(t, "a", at(0x100))
	g.write("200 10 b\n")
	require.Empty(t, at(0x200), "once a batch")
	c.Refresh()
	require.Equal(t, "b", at(0x200))
	_, language := c.Lookup(nil, 1, g, 0x100, JVM)
	require.Equal(t, V8JS, language)
	_, language = c.Lookup(nil, 1, g, 0x200, JVM)
	require.Equal(t, JVM, language)
	s := c.Stats()
	require.Equal(t, 1, s.Files)
	require.EqualValues(t, 2, s.Loads)
	require.Zero(t, s.Failures+s.Truncated+s.TimedOut+s.Refused)
}

// missing is a process without a map, or with one that is refused.
type missing struct{ err error }

func (m missing) OpenMap() (MapFile, error) { return MapFile{}, m.err }

func (m missing) Owner() Owner { return Owner{} }

func TestPerfMapsMissing(t *testing.T) {
	c := NewPerfMaps[int](CacheOptions{Wait: time.Minute, MaxBytes: 10 * minTableBytes})
	for i := range 100 {
		frames, _ := c.Lookup(nil, i, missing{os.ErrNotExist}, 1, Native)
		require.Empty(t, frames)
	}
	require.LessOrEqual(t, c.Stats().Bytes, 10*minTableBytes)
	require.Zero(t, c.Stats().Failures)
	frames, _ := c.Lookup(nil, -1, missing{errors.New("another user's")}, 1, Native)
	require.Empty(t, frames)
	require.EqualValues(t, 1, c.Stats().Failures)
}

// hung never opens.
type hung struct{ wait chan struct{} }

func (h hung) Owner() Owner { return Owner{UID: 1} }

func (h hung) OpenMap() (MapFile, error) {
	<-h.wait
	return MapFile{}, os.ErrNotExist
}

func TestPerfMapsHang(t *testing.T) {
	synctest.Test(t, perfMapsHang)
}

// perfMapsHang runs where time passes when all that is left to do is to wait.
func perfMapsHang(t *testing.T) {
	const wait = 200 * time.Millisecond
	h := hung{make(chan struct{})}
	g := &growing{}
	g.write("1 1 a\n")
	c := NewPerfMaps[int](CacheOptions{Wait: wait, MaxBytes: minTableBytes, blocked: func(int) bool { return true }})
	for batch := range 3 {
		began := time.Now()
		for i := range 4 * maxOwnerReads {
			c.Lookup(nil, i, h, 1, Native)
		}
		require.LessOrEqual(t, time.Since(began), wait/userWaitShare, "batch %d", batch)
		frames, _ := c.Lookup(nil, -1-batch, g, 1, Native)
		require.Len(t, frames, 1, "another user's")
		c.Refresh()
	}
	s := c.Stats()
	require.NotZero(t, s.TimedOut)
	require.NotZero(t, s.Refused)
	time.Sleep(hungAfter)
	require.Equal(t, maxOwnerReads, c.Stats().Hanging)
	require.Len(t, c.Hung(), maxOwnerReads)
	close(h.wait)
	synctest.Wait()
	c.Refresh()
	frames, _ := c.Lookup(nil, 0, g, 1, Native)
	require.Len(t, frames, 1)
	require.Empty(t, c.reading.now)
}
