//go:build linux

package executable

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// recurring is the id of a file of an image on a kernel that gives the ids of mounts again.
func recurring(inode uint64) procfs.FileID { return procfs.FileID{Inode: inode, Mount: 1<<63 | 7} }

// Where the next image may have the same ids, what is known of its files goes with the last process, and what others keep
// by a file's key is not taken for that of the next one.
func TestRecurringFiles(t *testing.T) {
	memory := budget.NewMemory(1 << 30)
	c := NewCache(Options{MaxFiles: 10, Memory: memory})
	lasting := c.file(procfs.FileID{Inode: 1, Mount: 1 << 40}, "/1", 0)
	used, first := c.file(recurring(2), "/2", 0), c.file(recurring(3), "/3", 0)
	used.Use(1)
	require.NotEqual(t, used.Key(), first.Key())
	require.Same(t, first, c.file(recurring(3), "/3", 0))
	c.EndInterval()
	require.Same(t, lasting, c.file(lasting.ID(), "/1", 0))
	require.Equal(t, lasting.ID(), lasting.Key())
	require.Same(t, used, c.file(recurring(2), "/2", 0), "a process maps it")
	second := c.file(recurring(3), "/3", 0)
	require.NotSame(t, first, second)
	require.Equal(t, first.ID(), second.ID())
	require.NotEqual(t, first.Key(), second.Key())
	used.Use(-1)
	c.EndInterval()
	require.Equal(t, 1, c.Len())
}

// What the kernel tells by key is not asked of a file of an image.
func TestImageHasNoKernelKey(t *testing.T) {
	named := func(*os.File) (record.FileKey, error) { return record.FileKey{Inode: 1}, nil }
	for mount, want := range map[uint64]record.FileKey{0: {Inode: 1}, 1: {}} {
		f := &File{key: procfs.FileID{Mount: mount}, opts: &fileOptions{name: named}}
		require.Equal(t, want, f.named(&Contents{}))
	}
}

// The next image with the same device number, inode, size and time has files of its own.
func TestImageAfterAnother(t *testing.T) {
	testutil.RequireRoot(t)
	if !testutil.Can(t, testutil.Images) {
		return
	}
	text, err := os.ReadFile("/bin/sleep")
	require.NoError(t, err)
	device := testutil.NewImageDevice(t, t.TempDir())
	c := newRowsFake(t, func(f *os.File) (record.FileKey, error) {
		info, err := f.Stat()
		return record.FileKey{Inode: inodeOf(info), Size: uint64(info.Size())}, err
	})
	var files []*File
	for i := range 2 {
		mine := slices.Clone(text)
		mine[len(mine)-1] ^= byte(i)
		of, cmd := c.start(device.Mount(mine))
		f := of[0]
		require.True(t, f.ID().OfImage())
		require.False(t, of[1].ID().OfImage(), of[1].Path())
		c.ask(cmd.Process.Pid)
		c.buildAll()
		require.Equal(t, rowsReady, f.rows.state)
		require.NotContains(t, c.rec.files, record.FileKey{Inode: f.ID().Inode, Size: uint64(f.ID().Size)})
		require.Contains(t, c.rec.files, record.FileKey{Inode: of[1].ID().Inode, Size: uint64(of[1].ID().Size)})
		opened, size, err := f.Open()
		require.NoError(t, err)
		require.Equal(t, mine, read(t, opened, size))
		require.NoError(t, opened.Close())
		files = append(files, f)
		c.end(cmd)
		device.Unmount()
	}
	require.NotSame(t, files[0], files[1])
	require.NotEqual(t, files[0].Key(), files[1].Key())
	require.NotEqual(t, files[0].HTLHash(), files[1].HTLHash())
	same := files[0].ID()
	same.Mount = files[1].ID().Mount
	require.Equal(t, same, files[1].ID(), "they are told apart by nothing else")
}
