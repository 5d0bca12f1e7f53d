package procfs

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Paths are those of the process, and lead to regular files or nowhere.
func TestOpenPath(t *testing.T) {
	f := FS{Root: t.TempDir()}
	root := filepath.Join(f.Root, "7", "root")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "tmp"), 0o755))
	write := func(path, text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) }
	write(filepath.Join(root, "tmp", "map"), "inside")
	outside := filepath.Join(t.TempDir(), "outside")
	write(outside, "outside")
	for name, target := range map[string]string{
		"link": "map", "absolute": "/tmp/map", "up": "../../../../../tmp/map",
		"out": outside, "own": "/proc/self/exe", "loop": "loop",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, "tmp", name)))
	}
	require.NoError(t, unix.Mkfifo(filepath.Join(root, "tmp", "fifo"), 0o644))
	require.NoError(t, os.Chown(filepath.Join(root, "tmp", "map"), os.Getuid(), os.Getgid()))
	for _, name := range []string{"/tmp/map", "/tmp/link", "/tmp/absolute", "/tmp/up", "/../../tmp/map"} {
		inTime(t, name, func() {
			file, info, err := f.OpenPath(7, name, 0)
			require.NoError(t, err, name)
			defer file.Close()
			b, err := io.ReadAll(file)
			require.NoError(t, err)
			require.Equal(t, "inside", string(b), name)
			require.EqualValues(t, 6, info.Size)
			require.EqualValues(t, os.Getuid(), info.UID)
		})
	}
	for _, name := range []string{"/tmp", "/tmp/fifo", "/tmp/out", "/tmp/own", "/tmp/loop", "/tmp/none", ""} {
		inTime(t, name, func() {
			_, _, err := f.OpenPath(7, name, 0)
			require.Error(t, err, name)
		})
	}
	for _, name := range []string{"/tmp/link", "/tmp/absolute", "/tmp/up"} {
		_, _, err := f.OpenPath(7, name, unix.O_NOFOLLOW)
		require.ErrorIs(t, err, ErrNotRegular, name)
	}
	_, _, err := f.OpenPath(8, "/tmp/map", 0)
	require.ErrorIs(t, err, ErrNoProcess)
	file, _, err := f.OpenPath(0, outside, 0)
	require.NoError(t, err, "as we see it")
	file.Close()
	_, _, err = FS{}.OpenPath(0, "/proc/self/exe", 0)
	require.ErrorIs(t, err, unix.ELOOP)
}
