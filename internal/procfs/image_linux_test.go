package procfs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// What an image says of a file may be true of another one in the next image: the mount is part of what identifies it, and
// whether its id may come again is known.
func TestFileOfImage(t *testing.T) {
	once := unix.Statx_t{Mask: unix.STATX_MNT_ID_UNIQUE, Mnt_id: 1 << 32, Dev_major: 7}
	again := unix.Statx_t{Mask: unix.STATX_MNT_ID, Mnt_id: 0, Dev_major: 7}
	immutable := unix.Statx_t{Mask: unix.STATX_MNT_ID_UNIQUE, Mnt_id: 1 << 32, Attributes: unix.STATX_ATTR_IMMUTABLE}
	server := unix.Statx_t{Mask: unix.STATX_MNT_ID_UNIQUE, Mnt_id: 1 << 32}
	for _, st := range []*unix.Statx_t{&once, &again, &immutable} {
		require.True(t, mayBeOfImage(st))
	}
	require.False(t, mayBeOfImage(&server), "FUSE and NFS have no device")
	installed := once
	installed.Mtime, installed.Ctime = unix.StatxTimestamp{Sec: 1}, unix.StatxTimestamp{Sec: 2, Nsec: 123_456_789}
	require.False(t, mayBeOfImage(&installed))
	installed.Mtime = installed.Ctime
	require.True(t, mayBeOfImage(&installed), "an EROFS may have one time in nanoseconds for all")
	installed.Mtime, installed.Ctime.Nsec = unix.StatxTimestamp{Sec: 1}, 120_000_000
	require.True(t, mayBeOfImage(&installed), "ISO 9660 has several times")
	for _, magic := range []int64{0x73717368, 0xe0f5e1e2, 0x9660, 0x28cd3d45, 0x7275} {
		id := FileID{Mount: mountOfImage(magic, &once)}
		require.True(t, id.OfImage(), "%#x", magic)
		require.False(t, id.MayRecur())
		id.Mount = mountOfImage(magic, &again)
		require.True(t, id.OfImage())
		require.True(t, id.MayRecur())
	}
	for _, magic := range []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC} {
		require.Zero(t, mountOfImage(magic, &once), "%#x", magic)
	}
	require.NotZero(t, mountOfImage(unix.EROFS_SUPER_MAGIC_V1, &immutable), "in a file")
	require.False(t, FileID{Dev: 1, Inode: 2}.OfImage())
	require.False(t, FileID{Dev: 1, Inode: 2}.MayRecur())
}

// A file of an image is the same one however it is found, and another one when the image, or an equal one, is mounted again.
func TestImage(t *testing.T) {
	testutil.RequireRoot(t)
	if !testutil.Can(t, testutil.Images) {
		return
	}
	text, err := os.ReadFile(build(t, pauser))
	require.NoError(t, err)
	device := testutil.NewImageDevice(t, t.TempDir())
	var seen []FileID
	for range 2 {
		path := device.Mount(text)
		pid := start(t, path)
		m := executableMapping(t, pid, path)
		id, err := FS{}.StatMapped(pid, m)
		require.NoError(t, err)
		require.True(t, id.OfImage())
		program, err := FS{}.StatExecutable(pid)
		require.NoError(t, err)
		require.Equal(t, id, program)
		file, err := FS{}.OpenMapped(pid, m, id)
		require.NoError(t, err)
		opened, err := Identify(file)
		require.NoError(t, err)
		require.Equal(t, id, opened)
		require.NoError(t, file.Close())
		m.Limit += 0x1000 // names no map_files entry, so that the file has to be found by its path
		byPath, err := FS{}.StatMapped(pid, m)
		require.NoError(t, err)
		require.Equal(t, id, byPath)
		seen = append(seen, id)
		require.NoError(t, unix.Kill(pid, unix.SIGKILL))
		device.Unmount()
	}
	if seen[0].MayRecur() {
		return
	}
	require.NotEqual(t, seen[0], seen[1])
	seen[0].Mount = seen[1].Mount
	require.Equal(t, seen[0], seen[1], "they are told apart by nothing else")
}
