//go:build linux

package executable

import (
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

// Copies share rows when they are equal to the last byte, and not when they only say so.
func TestRowsOfCopies(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(i int, text []byte)
		shared bool
	}{
		"equal":     {func(int, []byte) {}, true},
		"one byte":  {func(i int, text []byte) { text[len(text)/2] ^= byte(i) }, false},
		"a tail":    {func(i int, text []byte) { text[len(text)-1] ^= byte(i) }, false},
		"elsewhere": {func(i int, text []byte) { text[htlPart] ^= byte(i) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCopies(t, 2, tc.change, inodeOf)
			first, _ := c.run(0)
			tables, bytes := len(c.rec.tables), c.bytes
			second, _ := c.run(1)
			require.Same(t, second, second.origin())
			require.Equal(t, rowsReady, second.rows.state)
			require.Equal(t, tc.shared, first.rows.ID == second.rows.ID)
			require.Equal(t, tc.shared, len(c.rec.tables) == tables)
			require.Equal(t, tc.shared, c.bytes == bytes)
			require.Equal(t, tc.shared, first.Key() == second.Key())
			require.NotEqual(t, first.ID(), second.ID())
			require.Equal(t, second.rows.ID, c.rec.files[second.kernel])
			c.remove(first)
			require.Contains(t, c.rec.tables, second.rows.ID)
			id := second.rows.ID
			c.remove(second)
			require.NotContains(t, c.rec.tables, id)
		})
	}
}

// A copy that is another owner's has a key of its own: what he puts beside it is his word.
func TestCopyOfAnotherOwner(t *testing.T) {
	testutil.RequireRoot(t)
	c := newCopies(t, 2, func(int, []byte) {}, inodeOf)
	require.NoError(t, os.Chown(c.paths[1], 65534, 65534))
	first, _ := c.run(0)
	second, _ := c.run(1)
	require.Equal(t, first.rows.ID, second.rows.ID)
	require.NotEqual(t, first.Key(), second.Key())
	require.Equal(t, second.ID(), second.Key())
}

// A file that has changed since its rows were made has no share in those of another one.
func TestRowsOfChangedCopy(t *testing.T) {
	named := uint64(0)
	c := newCopies(t, 2, func(int, []byte) {}, func(info os.FileInfo) uint64 { return inodeOf(info) + named })
	first, _ := c.run(0)
	named = 1 << 32 // as its ctime would say
	second, _ := c.run(1)
	require.NotEqual(t, first.rows.ID, second.rows.ID)
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
