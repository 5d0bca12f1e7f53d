package symbol

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// sparse is a perf map with holes.
type sparse struct {
	growing
	file *os.File
	at   *perfMap
}

func newSparse(t *testing.T) *sparse {
	f, err := os.Create(filepath.Join(t.TempDir(), "map"))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return &sparse{growing: growing{now: time.Now()}, file: f, at: newPerfMap(maxMapBytes)}
}

// write writes lines that begin in a new line at an offset.
func (s *sparse) write(t *testing.T, off int64, lines string) {
	_, err := s.file.WriteAt([]byte("\n"+lines), off)
	require.NoError(t, err)
}

// update returns what is at two addresses.
func (s *sparse) update(t *testing.T) [2]string {
	st, err := s.file.Stat()
	require.NoError(t, err)
	s.at, err = s.at.update(MapFile{growingContents{&s.growing, s.file}, procfs.FileID{Dev: 1, Size: st.Size()}}, s.now, roomFor())
	require.NoError(t, err)
	return [2]string{nameAt(s.at, 0x100), nameAt(s.at, 0x200)}
}

// Of a map that is too large to be read in all, the last part holds.
func TestPerfMapLarge(t *testing.T) {
	s := newSparse(t)
	s.write(t, 0, "100 10 old\n200 10 old\n")
	s.write(t, maxMapFileBytes, "100 10 new\n")
	require.Equal(t, [2]string{"new", ""}, s.update(t))
	require.False(t, s.at.complete)
	require.LessOrEqual(t, s.reads, int64(maxMapFileBytes/2+4*probeBytes))
	before := s.reads
	s.now = s.now.Add(rereadGap)
	require.Equal(t, [2]string{"new", ""}, s.update(t))
	require.Equal(t, before, s.reads, "nothing is new")
	s.write(t, maxMapFileBytes+100, "200 10 later\n")
	require.Equal(t, [2]string{"new", "later"}, s.update(t))
	require.Less(t, s.reads-before, int64(5*probeBytes), "read on")
}

// A map that becomes too large is read on after a while, and where too much was left out, from its last part on.
func TestPerfMapOutgrown(t *testing.T) {
	s := newSparse(t)
	s.write(t, 0, "100 10 old\n200 10 old\n")
	require.Equal(t, [2]string{"old", "old"}, s.update(t))
	require.True(t, s.at.complete)
	s.write(t, maxMapFileBytes+100, "100 10 new\n")
	for range 2 {
		require.Equal(t, [2]string{"old", "old"}, s.update(t), "not so soon")
		require.False(t, s.at.complete)
	}
	require.LessOrEqual(t, s.reads, int64(maxMapFileBytes+4*maxMapLine))
	s.now = s.now.Add(rereadGap)
	require.Equal(t, [2]string{"new", "old"}, s.update(t))
	before := s.reads
	s.now = s.now.Add(rereadGap)
	s.write(t, 3*maxMapFileBytes, "100 10 last\n")
	require.Equal(t, [2]string{"last", ""}, s.update(t))
	require.LessOrEqual(t, s.reads-before, int64(maxMapFileBytes/2+4*maxMapLine))
}

// A map of holes that grows all the time costs so much a minute.
func TestPerfMapSparse(t *testing.T) {
	s := newSparse(t)
	s.write(t, 0, "100 10 a\n")
	for i := range int64(30) {
		require.NoError(t, os.Truncate(s.file.Name(), 1<<30+i*maxMapFileBytes))
		require.Equal(t, [2]string{}, s.update(t))
		s.now = s.now.Add(rereadGap / 10)
	}
	require.Less(t, s.reads, int64(4*maxMapFileBytes))
	require.LessOrEqual(t, s.at.read, s.at.limit)
	require.False(t, s.at.complete)
	require.Less(t, s.at.functions.bytes(), 1000)
}

// Of a line that is too long, the beginning counts.
func TestPerfMapLongLine(t *testing.T) {
	g := &growing{now: time.Now()}
	g.write("100 10 a" + strings.Repeat("b", 3*maxMapLine) + " 200 10 rest")
	m, err := newPerfMap(maxMapBytes).update(g.open(), g.now, roomFor())
	require.NoError(t, err)
	name := "a" + strings.Repeat("b", maxMapName-1)
	require.Equal(t, []string{name, ""}, []string{nameAt(m, 0x100), nameAt(m, 0x200)})
	g.write(" 200 10 rest\n200 10 c\n")
	m, err = m.update(g.open(), g.now, roomFor())
	require.NoError(t, err)
	require.Equal(t, []string{name, "c"}, []string{nameAt(m, 0x100), nameAt(m, 0x200)})
	require.True(t, m.complete)
}

// A read that fails is done again, though the file does not change, and what was read is not read again.
func TestPerfMapFails(t *testing.T) {
	for fails := 1; fails <= 3; fails++ { // which one: that of lines, or of one of both ends
		g := &growing{now: time.Now()}
		g.write("100 10 a\n")
		m := newPerfMap(maxMapBytes)
		g.fails = fails
		m, err := m.update(g.open(), g.now, roomFor())
		require.Error(t, err)
		m, err = m.update(g.open(), g.now, roomFor())
		require.NoError(t, err)
		require.Equal(t, "a", nameAt(m, 0x100))
		before := g.reads
		m, err = m.update(g.open(), g.now, roomFor())
		require.NoError(t, err)
		require.Equal(t, before, g.reads, "nothing is new")
		g.write("200 10 b\n")
		m, err = m.update(g.open(), g.now, roomFor())
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, []string{nameAt(m, 0x100), nameAt(m, 0x200)})
	}
}

// What does not fit into one piece is read on with the next batch, though the file does not change.
func TestPerfMapInPieces(t *testing.T) {
	const functions = 100
	g := &growing{now: time.Now()}
	for range functions {
		g.write("100 10 old\n")
	}
	g.write("100 10 new\n")
	m := newPerfMap(20 * entryBytes)
	for range functions {
		var err error
		m, err = m.update(g.open(), g.now, roomFor())
		require.NoError(t, err)
	}
	require.Equal(t, "new", nameAt(m, 0x100))
	require.True(t, m.complete)
	require.False(t, m.late)

	g = &growing{now: time.Now()}
	g.write("100 10 " + strings.Repeat("x", maxMapName) + "\n200 10 b\n")
	m, err := newPerfMap(20*entryBytes).update(g.open(), g.now, roomFor())
	require.NoError(t, err)
	require.Equal(t, []string{"", "b"}, []string{nameAt(m, 0x100), nameAt(m, 0x200)}, "one that never fits")
	require.False(t, m.complete)
}
