//go:build linux

package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// copies are the same program under several names, and the files that a table knows.
type copies struct {
	*rowsFake
	paths []string
}

func newCopies(t *testing.T, n int, change func(i int, text []byte), name func(os.FileInfo) uint64) *copies {
	t.Helper()
	text, err := os.ReadFile("/bin/sleep")
	require.NoError(t, err)
	c := &copies{rowsFake: newRowsFake(t, 64<<20)}
	c.files.opts.name = func(f *os.File) (record.FileKey, error) {
		info, err := f.Stat()
		if err != nil {
			return record.FileKey{}, err
		}
		return record.FileKey{Inode: name(info), Size: uint64(info.Size())}, nil
	}
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

// run starts a copy, has it sampled, and returns the file of its program.
func (c *copies) run(i int) (*File, *exec.Cmd) {
	c.t.Helper()
	id, cmd := c.startProgram(c.paths[i])
	c.HandleEvent(record.Event{Kind: record.EventExists, Process: id, PID: cmd.Process.Pid})
	c.work()
	c.Lookup(id, cmd.Process.Pid, nil)
	c.work()
	for c.build(1) > 0 {
	}
	for _, m := range c.process(id).Info().Mappings {
		if m.Path == c.paths[i] {
			return m.File, cmd
		}
	}
	require.FailNow(c.t, "the program is not mapped")
	return nil, nil
}

// What is one file to the kernel is read once and has one table, whichever of its mounts
// is there first and whichever goes.
func TestOneFileOfManyMounts(t *testing.T) {
	c := newCopies(t, 3, func(int, []byte) {}, func(os.FileInfo) uint64 { return 1 })
	first, cmd := c.run(0)
	tables, built := len(c.rec.tables), c.counts.rowsBuilt.Load()
	require.Equal(t, rowsReady, first.rows.state)
	second, _ := c.run(1)
	require.NotSame(t, first, second)
	require.Equal(t, first.Key(), second.Key())
	require.Equal(t, first.facts.buildID, second.facts.buildID)
	require.Len(t, c.rec.tables, tables)
	require.Equal(t, built, c.counts.rowsBuilt.Load())
	require.Equal(t, first.rows.id, c.rec.files[first.kernel])

	// The first one's only process goes, its rows stay.
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	c.HandleEvent(record.Event{Kind: record.EventExit, Process: c.idOf(cmd.Process.Pid)})
	c.work()
	c.EndInterval()
	c.EndInterval()
	c.EndInterval()
	require.Zero(t, first.users.Load())
	require.EqualValues(t, 1, first.others.Load())
	for range 2 {
		c.sweepRows()
		c.advance(int64(2 * keepRows))
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
	var ids []record.ProcessID
	var cmds []*exec.Cmd
	for i := range c.paths {
		id, cmd := c.startProgram(c.paths[i])
		c.HandleEvent(record.Event{Kind: record.EventExists, Process: id, PID: cmd.Process.Pid})
		c.work()
		c.Lookup(id, cmd.Process.Pid, nil)
		c.work()
		ids, cmds = append(ids, id), append(cmds, cmd)
	}
	f := c.process(ids[0]).Info().Mappings[0].File
	require.Equal(t, rowsWanted, f.origin().rows.state)
	require.NoError(t, cmds[0].Process.Kill())
	_ = cmds[0].Wait()
	require.NoError(t, os.Remove(c.paths[0]))
	c.descriptors.closeAll()
	for c.build(1) > 0 {
	}
	require.Equal(t, rowsReady, f.origin().rows.state)
	require.Equal(t, f.places.version(), f.closed)
}

// A file that could not be opened for its rows is opened again when another process maps it.
func TestRowsOfNextProcess(t *testing.T) {
	c := newCopies(t, 1, func(int, []byte) {}, inodeOf)
	id, cmd := c.startProgram(c.paths[0])
	ask := func(id record.ProcessID, cmd *exec.Cmd) rowsState {
		c.HandleEvent(record.Event{Kind: record.EventExists, Process: id, PID: cmd.Process.Pid})
		c.work()
		c.Lookup(id, cmd.Process.Pid, nil)
		c.work()
		return c.process(id).Info().Mappings[0].File.rows.state
	}
	require.Equal(t, rowsWanted, ask(id, cmd))
	f := c.process(id).Info().Mappings[0].File
	elsewhere := f.places.all()[0]
	elsewhere.mapping.Start, elsewhere.mapping.Inode = 0, 1 // as of one that maps something else there by now
	f.places.see(elsewhere)
	c.descriptors.closeAll()
	for c.build(1) > 0 {
	}
	require.Equal(t, rowsUnknown, f.rows.state)
	require.Equal(t, rowsUnknown, ask(id, cmd), "the same process")
	require.Equal(t, rowsWanted, ask(c.startProgram(c.paths[0])))
	for c.build(1) > 0 {
	}
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
			tables, bytes := len(c.rec.tables), c.rows.bytes
			second, _ := c.run(1)
			require.Same(t, second, second.origin())
			require.Equal(t, rowsReady, second.rows.state)
			require.Equal(t, tc.shared, first.rows.id == second.rows.id)
			require.Equal(t, tc.shared, len(c.rec.tables) == tables)
			require.Equal(t, tc.shared, c.rows.bytes == bytes)
			require.Equal(t, second.rows.id, c.rec.files[second.kernel])
			c.removeRows(first)
			require.Contains(t, c.rec.tables, second.rows.id)
			id := second.rows.id
			c.removeRows(second)
			require.NotContains(t, c.rec.tables, id)
		})
	}
}

// A file that has changed since its rows were made has no share in those of another one.
func TestRowsOfChangedCopy(t *testing.T) {
	named := uint64(0)
	c := newCopies(t, 2, func(int, []byte) {}, func(info os.FileInfo) uint64 { return inodeOf(info) + named })
	first, _ := c.run(0)
	named = 1 << 32 // as its ctime would say
	second, _ := c.run(1)
	require.NotEqual(t, first.rows.id, second.rows.id)
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
	require.Len(t, c.rows.tables, len(c.rec.files))
}

// idOf returns the identity of a process that the table knows.
func (c *copies) idOf(pid int) record.ProcessID {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byPID[pid].id
}

// The pages are those that the kernel counts.
func TestExecPages(t *testing.T) {
	var s scratch
	f := newRowsFake(t, 1)
	_, cmd := f.start()
	require.NoError(t, s.read(f.opts.FS, cmd.Process.Pid))
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "status"))
	require.NoError(t, err)
	var told uint64
	for _, name := range []string{"VmExe", "VmLib"} {
		var kilobytes uint64
		_, rest, _ := strings.Cut(string(status), name+":")
		_, err := fmt.Sscan(rest, &kilobytes)
		require.NoError(t, err)
		told += kilobytes << 10
	}
	require.Equal(t, told, s.execPages()*uint64(os.Getpagesize()))
}
