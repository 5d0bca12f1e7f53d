package procfs

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// process is a process directory of plain files, for a user and a group.
func process(t *testing.T, uid, gid int) (f FS, root string) {
	f = FS{Root: t.TempDir()}
	dir := filepath.Join(f.Root, "7")
	root = filepath.Join(dir, "root")
	require.NoError(t, os.MkdirAll(root, 0o755))
	status := fmt.Sprintf("Uid:\t%d\t0\t0\t0\nGid:\t%d\t0\t0\t0\nGroups:\t%d %d\n", uid, gid, gid+1, gid+2)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "status"), []byte(status), 0o600))
	return f, root
}

// Paths are those of the process, and lead to regular files or nowhere.
func TestOpenPath(t *testing.T) {
	f, root := process(t, os.Getuid(), os.Getgid())
	require.NoError(t, os.MkdirAll(filepath.Join(root, "tmp"), 0o755))
	write := func(path, text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) }
	write(filepath.Join(root, "tmp", "map"), "inside")
	outside := filepath.Join(t.TempDir(), "outside")
	write(outside, "outside")
	for name, target := range map[string]string{
		"link": "map", "absolute": "/tmp/map", "up": "../../../../../tmp/map", "here": "/tmp",
		"out": outside, "own": "/proc/self/exe", "loop": "loop", "back": "../tmp/back/map",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, "tmp", name)))
	}
	require.NoError(t, unix.Mkfifo(filepath.Join(root, "tmp", "fifo"), 0o644))
	require.NoError(t, os.Chown(filepath.Join(root, "tmp", "map"), os.Getuid(), os.Getgid()))
	for _, name := range []string{"/tmp/map", "/tmp/link", "/tmp/absolute", "/tmp/up", "/tmp/here/./here//link", "/../../tmp/map"} {
		inTime(t, name, func() {
			file, info, err := f.OpenPath(7, ProcessRoot, name, 0)
			require.NoError(t, err, name)
			defer file.Close()
			b, err := io.ReadAll(file)
			require.NoError(t, err)
			require.Equal(t, "inside", string(b), name)
			require.EqualValues(t, 6, info.Size)
			require.EqualValues(t, os.Getuid(), info.UID)
			require.EqualValues(t, os.Getuid(), info.User)
		})
	}
	deep := "/tmp" + strings.Repeat("/here/.", maxWalkLinks+1) + "/map"
	for _, name := range []string{
		"/tmp", "/tmp/fifo", "/tmp/out", "/tmp/own", "/tmp/loop", "/tmp/back", "/tmp/none", "/tmp/map/map", "tmp/map", "", deep,
	} {
		inTime(t, name, func() {
			_, _, err := f.OpenPath(7, ProcessRoot, name, 0)
			require.Error(t, err, name)
		})
	}
	for _, name := range []string{"/tmp/link", "/tmp/absolute", "/tmp/up"} {
		_, _, err := f.OpenPath(7, ProcessRoot, name, unix.O_NOFOLLOW)
		require.ErrorIs(t, err, ErrNotRegular, name)
	}
	file, _, err := f.OpenPath(7, ProcessRoot, "/tmp/here/map", unix.O_NOFOLLOW)
	require.NoError(t, err, "the last part is no link")
	file.Close()
	_, _, err = f.OpenPath(8, ProcessRoot, "/tmp/map", 0)
	require.ErrorIs(t, err, ErrNoProcess)
	file, _, err = f.OpenPath(7, OurRoot, outside, 0)
	require.NoError(t, err, "as we see it")
	file.Close()
	file, _, err = f.OpenPath(8, OurRoot, "/etc/passwd", 0)
	require.NoError(t, err, "for all to read, and the process has gone")
	file.Close()
	require.NoError(t, os.Chmod(outside, 0o640))
	_, _, err = f.OpenPath(8, OurRoot, outside, 0)
	require.ErrorIs(t, err, ErrNotAllowed)
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	require.Less(t, len(open), 50, "nothing stays open")
}

// A path leads no further than the process's user may go.
func TestOpenPathAs(t *testing.T) {
	testutil.RequireRoot(t) // to own what others may not read
	const uid, gid = 65534, 7000
	f, root := process(t, uid, gid)
	for _, c := range []struct {
		uid, gid  int
		dir, file os.FileMode
		allowed   bool
	}{
		{0, 0, 0o755, 0o644, true},
		{0, 0, 0o755, 0o640, false},
		{0, 0, 0o700, 0o644, false}, // in a directory that it may not pass
		{0, 0, 0o711, 0o644, true},
		{uid, 0, 0o700, 0o400, true},
		{uid, 0, 0o755, 0o044, false}, // the owner's bits are the owner's
		{0, gid, 0o710, 0o640, true},
		{0, gid + 2, 0o710, 0o640, true},
		{0, gid + 3, 0o710, 0o640, false},
		{0, gid, 0o755, 0o604, false},
	} {
		dir := filepath.Join(root, "dir")
		path := filepath.Join(dir, "file")
		require.NoError(t, os.Mkdir(dir, c.dir))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
		require.NoError(t, os.Symlink("/dir/file", filepath.Join(root, "link")))
		for _, p := range []string{dir, path} {
			require.NoError(t, os.Chown(p, c.uid, c.gid))
		}
		require.NoError(t, os.Chmod(path, c.file))
		require.NoError(t, os.Chmod(dir, c.dir))
		for _, name := range []string{"/dir/file", "/link"} {
			file, info, err := f.OpenPath(7, ProcessRoot, name, 0)
			if !c.allowed {
				require.ErrorIs(t, err, ErrNotAllowed, "%+v", c)
				continue
			}
			require.NoError(t, err, "%+v", c)
			require.EqualValues(t, c.uid, info.UID)
			require.NoError(t, file.Close())
		}
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.Remove(filepath.Join(root, "link")))
	}
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, nil, 0o600))
	_, _, err := f.OpenPath(7, OurRoot, secret, 0)
	require.ErrorIs(t, err, ErrNotAllowed)
}

// accessList encodes an access control list that allows all to read and to pass, but for one user.
func accessList(except uint32) []byte {
	const version, undefined = 2, 1<<32 - 1 // include/uapi/linux/posix_acl_xattr.h
	b := binary.LittleEndian.AppendUint32(nil, version)
	for _, e := range []struct {
		tag, allowed uint16
		id           uint32
	}{{0x01, 7, undefined}, {0x02, 0, except}, {0x04, 5, undefined}, {0x10, 5, undefined}, {0x20, 5, undefined}} {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.allowed)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	return b
}

// What an access control list takes from a user, the mode does not give him.
func TestOpenPathWithAccessList(t *testing.T) {
	testutil.RequireRoot(t)
	const uid, gid = 65534, 7000
	for name, c := range map[string]struct {
		owner   int
		listed  string
		allowed bool
	}{
		"none": {0, "", true}, "of the file": {0, "dir/file", false}, "of the directory": {0, "dir", false},
		"the owner's": {uid, "dir/file", true}, "of the owner's directory": {uid, "dir", true},
	} {
		t.Run(name, func(t *testing.T) {
			f, root := process(t, uid, gid)
			for _, path := range []string{"dir", "dir/file"} {
				path = filepath.Join(root, path)
				if filepath.Base(path) == "dir" {
					require.NoError(t, os.Mkdir(path, 0o755))
				} else {
					require.NoError(t, os.WriteFile(path, nil, 0o600))
				}
				require.NoError(t, os.Chmod(path, 0o755)) //nolint:gosec // all may pass it
				require.NoError(t, os.Chown(path, c.owner, 0))
			}
			if c.listed != "" {
				require.NoError(t, unix.Setxattr(filepath.Join(root, c.listed), "system.posix_acl_access", accessList(uid), 0))
			}
			file, _, err := f.OpenPath(7, ProcessRoot, "/dir/file", 0)
			if !c.allowed {
				require.ErrorIs(t, err, ErrNotAllowed)
				return
			}
			require.NoError(t, err)
			require.NoError(t, file.Close())
		})
	}
	f, root := process(t, 0, 0)
	path := filepath.Join(root, "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Chown(path, uid, gid))
	require.NoError(t, unix.Setxattr(path, "system.posix_acl_access", accessList(uid), 0))
	file, _, err := f.OpenPath(7, ProcessRoot, "/file", 0)
	require.NoError(t, err, "root passes everywhere")
	require.NoError(t, file.Close())
}
