//go:build linux

package executable

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// copies are the same program under several names.
type copies struct {
	*rowsFake
	paths []string
}

func newCopies(t *testing.T, n int, change func(i int, text []byte), name func(os.FileInfo) uint64) *copies {
	t.Helper()
	text, err := os.ReadFile("/bin/sleep")
	require.NoError(t, err)
	c := &copies{rowsFake: newRowsFake(t, func(f *os.File) (record.FileKey, error) {
		info, err := f.Stat()
		if err != nil {
			return record.FileKey{}, err
		}
		return record.FileKey{Inode: name(info), Size: uint64(info.Size())}, nil
	})}
	for i := range n {
		path := filepath.Join(t.TempDir(), "sleep")
		mine := append([]byte(nil), text...)
		change(i, mine)
		require.NoError(t, os.WriteFile(path, mine, 0o755))
		c.paths = append(c.paths, path)
	}
	return c
}

func inodeOf(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// run starts a copy, has its rows built, and returns the file of its program.
func (c *copies) run(i int) (*File, *exec.Cmd) {
	c.t.Helper()
	files, cmd := c.start(c.paths[i])
	c.ask(cmd.Process.Pid)
	c.buildAll()
	return files[0], cmd
}

// What is one file to the kernel is read once and has one table, whichever of its mounts
// is there first and whichever goes.
func TestOneFileOfManyMounts(t *testing.T) {
	c := newCopies(t, 3, func(int, []byte) {}, func(os.FileInfo) uint64 { return 1 })
	first, cmd := c.run(0)
	tables, built := len(c.rec.tables), c.Stats().Built
	require.Equal(t, rowsReady, first.rows.state)
	second, _ := c.run(1)
	require.NotSame(t, first, second)
	require.Equal(t, first.Key(), second.Key())
	require.Same(t, &first.facts.Layout.Loads[0], &second.facts.Layout.Loads[0], "it is read once")
	require.Equal(t, first.facts.BuildIDGNU, second.facts.BuildIDGNU)
	require.Len(t, c.rec.tables, tables)
	require.Equal(t, built, c.Stats().Built)
	require.Equal(t, first.rows.ID, c.rec.files[first.kernel])

	// The first one's only process goes, its rows stay.
	c.end(cmd)
	require.Zero(t, first.users.Load())
	require.EqualValues(t, 1, first.others.Load())
	for range 2 {
		c.sweep()
		c.clock.Add(int64(2 * keepRows))
	}
	require.Len(t, c.rec.tables, tables)
	third, _ := c.run(2)
	require.Same(t, first, third.origin())
	require.Len(t, c.rec.tables, tables)
}

// When the process that asked for rows has gone before they are built, another mount of the
// file gives them.
func TestRowsOfAnotherMount(t *testing.T) {
	c := newCopies(t, 2, func(int, []byte) {}, func(os.FileInfo) uint64 { return 1 })
	files, first := c.start(c.paths[0])
	_, second := c.start(c.paths[1])
	c.ask(first.Process.Pid)
	c.ask(second.Process.Pid)
	f := files[0]
	require.Equal(t, rowsWanted, f.origin().rows.state)
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()
	require.NoError(t, os.Remove(c.paths[0]))
	c.cache.Close()
	c.buildAll()
	require.Equal(t, rowsReady, f.origin().rows.state)
	require.Equal(t, f.places.version(), f.closed)
}

// A file that could not be opened for its rows is opened again when another process maps it.
func TestRowsOfNextProcess(t *testing.T) {
	c := newCopies(t, 1, func(int, []byte) {}, inodeOf)
	files, cmd := c.start(c.paths[0])
	f := files[0]
	ask := func(cmd *exec.Cmd) rowsState {
		c.ask(cmd.Process.Pid)
		return f.rows.state
	}
	require.Equal(t, rowsWanted, ask(cmd))
	elsewhere := f.places.all()[0]
	elsewhere.mapping.Start, elsewhere.mapping.Inode = 0, 1 // as of one that maps something else there by now
	f.places.see(elsewhere)
	c.cache.Close()
	c.buildAll()
	require.Equal(t, rowsUnknown, f.rows.state)
	require.Equal(t, rowsUnknown, ask(cmd), "the same process")
	_, next := c.start(c.paths[0])
	require.Equal(t, rowsWanted, ask(next))
	c.buildAll()
	require.Equal(t, rowsReady, f.rows.state)
}

// otherRows makes a copy of sleep with other rows: a frame of a function has another size.
func otherRows(t *testing.T, i int, text []byte) {
	t.Helper()
	e, err := elf.NewFile(bytes.NewReader(text))
	require.NoError(t, err)
	frames := e.Section(".eh_frame")
	at := bytes.Index(text[frames.Offset:][:frames.Size], []byte{0x0e, 0x10}) // DW_CFA_def_cfa_offset: 16
	require.GreaterOrEqual(t, at, 0)
	text[int(frames.Offset)+at+1] += byte(8 * i)
}

// Files share a table when their rows are the same, and not when they only look alike. All else is
// each file's own.
func TestRowsOfCopies(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(i int, text []byte)
		shared bool
	}{
		"equal":         {func(int, []byte) {}, true},
		"other rows":    {func(i int, text []byte) { otherRows(t, i, text) }, false},
		"another tail":  {func(i int, text []byte) { text[len(text)-1] ^= byte(i) }, true},
		"another owner": {func(int, []byte) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCopies(t, 2, tc.change, inodeOf)
			if name == "another owner" {
				testutil.RequireRoot(t)
				require.NoError(t, os.Chown(c.paths[1], 65534, 65534))
			}
			first, _ := c.run(0)
			tables, bytes := len(c.rec.tables), c.bytes
			second, _ := c.run(1)
			require.Same(t, second, second.origin())
			require.Equal(t, rowsReady, second.rows.state)
			require.Equal(t, first.rows.Base, second.rows.Base)
			require.Equal(t, first.rows.Blocks, second.rows.Blocks)
			require.Equal(t, tc.shared, first.rows.ID == second.rows.ID)
			require.Equal(t, tc.shared, len(c.rec.tables) == tables)
			require.Equal(t, tc.shared, c.bytes == bytes)
			require.Len(t, c.rec.tables, c.Stats().Tables)
			require.NotEqual(t, first.Key(), second.Key())
			require.Equal(t, second.rows.ID, c.rec.files[second.kernel])
			c.remove(first)
			require.Contains(t, c.rec.tables, second.rows.ID)
			id := second.rows.ID
			c.remove(second)
			require.NotContains(t, c.rec.tables, id)
			require.Len(t, c.byRows, len(c.tables))
		})
	}
}

// What a file is now says nothing of the rows that were made of it: who has it mapped can write to
// it without a trace.
func TestRowsOfChangedCopy(t *testing.T) {
	c := newCopies(t, 2, func(i int, text []byte) { otherRows(t, 1-i, text) }, inodeOf)
	first, _ := c.run(0)
	genuine, err := os.ReadFile(c.paths[1])
	require.NoError(t, err)
	require.NoError(t, os.Remove(c.paths[0]))
	require.NoError(t, os.WriteFile(c.paths[0], genuine, 0o755))
	second, _ := c.run(1)
	require.Equal(t, first.HTLHash(), second.HTLHash())
	require.NotEqual(t, first.rows.ID, second.rows.ID)
}

// The hash of rows has all that they say.
func TestRowsOf(t *testing.T) {
	table := func() *record.UnwindTable {
		return &record.UnwindTable{
			Base: 4096, Rules: []record.UnwindRule{{}, {CFA: 1, Arg: 2, RA: 3, FP: 4, CFAOffset: 5, RAOffset: 6, FPOffset: 7}},
			Index: []uint32{0, 1}, Rows: []record.UnwindRow{8, 9},
		}
	}
	seen := map[[sha256.Size]byte]bool{rowsOf(table()): true}
	require.True(t, seen[rowsOf(table())])
	for _, change := range []func(*record.UnwindTable){
		func(t *record.UnwindTable) { t.Base++ },
		func(t *record.UnwindTable) { t.Rules[1].CFA++ },
		func(t *record.UnwindTable) { t.Rules[1].Arg++ },
		func(t *record.UnwindTable) { t.Rules[1].RA++ },
		func(t *record.UnwindTable) { t.Rules[1].FP++ },
		func(t *record.UnwindTable) { t.Rules[1].CFAOffset++ },
		func(t *record.UnwindTable) { t.Rules[1].RAOffset++ },
		func(t *record.UnwindTable) { t.Rules[1].FPOffset++ },
		func(t *record.UnwindTable) { t.Index[1]++ },
		func(t *record.UnwindTable) { t.Rows[1]++ },
		func(t *record.UnwindTable) { t.Index, t.Rows = append(t.Index, 8), t.Rows[1:] },
	} {
		changed := table()
		change(changed)
		sum := rowsOf(changed)
		require.False(t, seen[sum])
		seen[sum] = true
	}
}

// Rows are not used when the file has changed while they were read.
func TestChangesWhileRowsAreRead(t *testing.T) {
	calls := uint64(0)
	c := newCopies(t, 1, func(int, []byte) {}, func(info os.FileInfo) uint64 { calls++; return calls })
	f, _ := c.run(0)
	require.Equal(t, rowsUnknown, f.rows.state)
	require.Equal(t, f.places.version(), f.closed, "not tried for ever")
	for file := range c.rec.files {
		require.Zero(t, file, "the vDSO alone has rows")
	}
	require.Len(t, c.rec.tables, len(c.rec.files))
	require.Len(t, c.tables, len(c.rec.files))
}
