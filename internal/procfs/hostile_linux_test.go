package procfs

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// inTime fails when a call blocks.
func inTime(t *testing.T, what string, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); call() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		require.Fail(t, "blocked", what)
	}
}

// A path that was the executable's leads to something that must not be opened:
// reading blocks or consumes, and opening alone can rewind a tape.
func TestPathsOfOtherKinds(t *testing.T) {
	testutil.RequireRoot(t)
	device := func(major, minor uint32, mode uint32) func(string) error {
		return func(path string) error { return unix.Mknod(path, mode|0o666, int(unix.Mkdev(major, minor))) }
	}
	for name, replace := range map[string]func(path string) error{
		"FIFO":         func(path string) error { return unix.Mkfifo(path, 0o666) },
		"directory":    func(path string) error { return os.Mkdir(path, 0o755) },
		"/dev/zero":    device(1, 5, unix.S_IFCHR),
		"/dev/tty":     device(5, 0, unix.S_IFCHR),
		"no driver":    device(4000, 1, unix.S_IFCHR),
		"block device": device(7, 0, unix.S_IFBLK),
		"link to a FIFO": func(path string) error {
			return errors.Join(unix.Mkfifo(path+".fifo", 0o666), os.Symlink(filepath.Base(path)+".fifo", path))
		},
		"socket": func(path string) error {
			listener, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { listener.Close() })
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := build(t, pauser)
			pid := start(t, path)
			m := executableMapping(t, pid, path)
			m.Limit += 0x1000 // names no map_files entry
			require.NoError(t, os.Remove(path))
			require.NoError(t, replace(path))
			inTime(t, "open", func() {
				_, err := FS{}.OpenMapped(pid, m, FileID{})
				require.ErrorIs(t, err, ErrNotRegular)
				_, err = FS{}.StatMapped(pid, m)
				require.ErrorIs(t, err, ErrNotRegular)
			})
		})
	}
}

// mapper maps a file executable.
const mapper = `
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(argv[1], O_RDONLY), 0) == MAP_FAILED) return 1;
	puts("ready"); fflush(stdout); for (;;) pause();
}`

// A device is mapped: there is an inode, but nothing to read.
func TestMappedDevice(t *testing.T) {
	pid := start(t, build(t, mapper), "/dev/zero")
	m := executableMapping(t, pid, "/dev/zero")
	require.NotZero(t, m.Inode)
	inTime(t, "open", func() {
		_, err := FS{}.OpenMapped(pid, m, FileID{})
		require.ErrorIs(t, err, ErrNotRegular)
	})
}

// command runs a program until the end of the test, in a place of its own.
func command(t *testing.T, attr *syscall.SysProcAttr, path string, args ...string) int {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.SysProcAttr = "/", attr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	return cmd.Process.Pid
}

func readMapped(t *testing.T, pid int, m Mapping) []byte {
	t.Helper()
	id, err := FS{}.StatMapped(pid, m)
	require.NoError(t, err)
	file, err := FS{}.OpenMapped(pid, m, id)
	require.NoError(t, err)
	defer file.Close()
	conn, err := file.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, conn.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		require.NoError(t, err)
		require.Zero(t, flags&unix.O_NONBLOCK, "Go's poller would take it")
	}))
	data, err := io.ReadAll(file)
	require.NoError(t, err)
	require.EqualValues(t, id.Size, len(data))
	return data
}

// executableOf returns the executable mapping of a process's program and, by a
// limit that map_files does not have, the same to be found by its path.
func executableOf(t *testing.T, pid int) (exact, byPath Mapping) {
	t.Helper()
	exe, err := FS{}.StatExecutable(pid)
	require.NoError(t, err)
	for m, err := range (FS{}).Mappings(pid) {
		require.NoError(t, err)
		if m.Perms&PermExec == 0 || m.Inode == 0 {
			continue
		}
		if id, err := (FS{}).StatMapped(pid, m); err == nil && id == exe {
			byPath = m
			byPath.Limit += 0x1000
			return m, byPath
		}
	}
	require.Fail(t, "no executable mapping")
	return Mapping{}, Mapping{}
}

// A process of another mount namespace has its executable on a filesystem that
// nobody else sees, under a path where others see another file.
func TestMountNamespace(t *testing.T) {
	testutil.RequireRoot(t)
	dir := t.TempDir()
	outside, hidden := build(t, pauser, "-static"), filepath.Join(dir, "p")
	require.NoError(t, os.WriteFile(hidden, []byte("what others see under the path"), 0o755))
	script := "mount -t tmpfs none " + dir + " && cp " + outside + " " + hidden + " && exec " + hidden
	pid := command(t, &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}, "/bin/sh", "-c", script)
	want, err := os.ReadFile(outside)
	require.NoError(t, err)
	exact, byPath := executableOf(t, pid)
	require.Equal(t, hidden, exact.Path)
	require.Equal(t, want, readMapped(t, pid, exact))
	require.Equal(t, want, readMapped(t, pid, byPath), "through /proc/PID/root")
}

// The links of a chroot stay in it.
func TestChrootEscape(t *testing.T) {
	testutil.RequireRoot(t)
	root := t.TempDir()
	program := build(t, pauser, "-static")
	require.NoError(t, os.Mkdir(filepath.Join(root, "bin"), 0o755))
	out, err := exec.Command("cp", program, filepath.Join(root, "bin", "p")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	pid := command(t, &syscall.SysProcAttr{Chroot: root}, "/bin/p")
	want, err := os.ReadFile(program)
	require.NoError(t, err)
	exact, byPath := executableOf(t, pid)
	require.Equal(t, want, readMapped(t, pid, exact))
	require.Equal(t, want, readMapped(t, pid, byPath))

	// The same file stands outside, under the name that the links give.
	outside := filepath.Join(t.TempDir(), "p")
	require.NoError(t, os.Link(filepath.Join(root, "bin", "p"), outside))
	inside := byPath
	inside.Path = outside
	_, _, err = FS{}.locateBelow(pid, ProcessRoot, inside, anybody)
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, target := range []string{outside, "../../../../../../../../.." + outside, "/proc/self/exe", "/proc/1/root" + outside} {
		require.NoError(t, os.RemoveAll(filepath.Join(root, "bin")))
		require.NoError(t, os.Mkdir(filepath.Join(root, "bin"), 0o755))
		require.NoError(t, os.Symlink(target, filepath.Join(root, "bin", "p")))
		inside.Path = "/bin/p"
		fd, _, err := FS{}.locateBelow(pid, ProcessRoot, inside, anybody)
		require.Error(t, err, target)
		require.Equal(t, -1, fd)
	}
	// A link that begins at the root begins at the process's.
	require.NoError(t, os.Link(outside, filepath.Join(root, "real")))
	require.NoError(t, os.Remove(filepath.Join(root, "bin", "p")))
	require.NoError(t, os.Symlink("/real", filepath.Join(root, "bin", "p")))
	fd, _, err := FS{}.locateBelow(pid, ProcessRoot, inside, anybody)
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
}

// Overlays: the mapped file, its path and what stat says have different devices,
// and, depending on the kernel, different inodes.
func TestOverlay(t *testing.T) {
	testutil.RequireRoot(t)
	base := t.TempDir()
	require.NoError(t, unix.Mount("none", base, "tmpfs", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(base, unix.MNT_DETACH)) })
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		require.NoError(t, os.Mkdir(filepath.Join(base, name), 0o755))
	}
	program := build(t, pauser, "-static")
	want, err := os.ReadFile(program)
	require.NoError(t, err)
	for _, name := range []string{"kept", "deleted", "replaced"} {
		require.NoError(t, os.WriteFile(filepath.Join(base, "lower", name), want, 0o755))
	}
	merged := filepath.Join(base, "merged")
	options := "lowerdir=" + base + "/lower,upperdir=" + base + "/upper,workdir=" + base + "/work"
	require.NoError(t, unix.Mount("overlay", merged, "overlay", 0, options))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(merged, unix.MNT_DETACH)) })

	pids := map[string]int{}
	for _, name := range []string{"kept", "deleted", "replaced"} {
		pids[name] = start(t, filepath.Join(merged, name))
	}
	require.NoError(t, os.Remove(filepath.Join(merged, "deleted")))
	require.NoError(t, os.WriteFile(filepath.Join(merged, "new"), []byte("another file"), 0o755))
	require.NoError(t, os.Rename(filepath.Join(merged, "new"), filepath.Join(merged, "replaced")))
	for name, pid := range pids {
		exact, byPath := executableOf(t, pid)
		require.Equal(t, want, readMapped(t, pid, exact), name)
		id, err := FS{}.StatMapped(pid, byPath)
		if err == nil {
			var file *os.File
			file, err = FS{}.OpenMapped(pid, byPath, id)
			require.NoError(t, err)
			file.Close()
		}
		switch name {
		case "kept":
			require.NoError(t, err)
		case "deleted":
			require.ErrorIs(t, err, os.ErrNotExist)
		default:
			require.ErrorIs(t, err, ErrReplaced)
		}
	}
}

// Directories nested beyond PATH_MAX: no path names the file, the kernel shows
// one of many pages.
func TestPathBeyondPathMax(t *testing.T) {
	program := build(t, pauser, "-static")
	nest := build(t, `
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv) {
	if (chdir(argv[1])) return 1;
	for (int i = 0; i < 100; i++)
		if (mkdir(argv[2], 0755) || chdir(argv[2])) return 2;
	setenv("FROM", argv[3], 1);
	if (system("cp -- \"$FROM\" p")) return 3;
	execl("./p", "p", NULL);
	return 4;
}`)
	top := filepath.Join(t.TempDir(), "top")
	require.NoError(t, os.Mkdir(top, 0o755))
	t.Cleanup(func() {
		out, err := exec.Command("rm", "-rf", top).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	pid := command(t, nil, nest, top, strings.Repeat("d", 200), program)
	want, err := os.ReadFile(program)
	require.NoError(t, err)
	exact, byPath := executableOf(t, pid)
	require.Empty(t, exact.Path, "longer than a line that is kept")
	require.Equal(t, want, readMapped(t, pid, exact))
	_, err = FS{}.StatMapped(pid, byPath)
	require.Error(t, err)
	_, err = FS{}.OpenMapped(pid, byPath, FileID{})
	require.Error(t, err)
	_, _, err = FS{}.Executable(pid)
	require.Error(t, err)
}

// Files of /proc that never end cost what their bounds say.
func TestEndlessProcFiles(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "7")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "task"), 0o755))
	for _, name := range []string{"stat", "status", "cgroup", "cmdline"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		require.NoError(t, os.Truncate(path, 1<<40)) // holes
	}
	f := FS{Root: root}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := f.Stat(7)
	require.Error(t, err)
	_, err = f.Status(7)
	require.Error(t, err)
	group, err := f.Cgroup(7)
	require.NoError(t, err)
	require.Empty(t, group)
	args, more, err := f.CommandLine(7, 4096)
	require.NoError(t, err)
	require.True(t, more)
	require.Empty(t, args)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}
