package procfs

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// build compiles a C program and returns its path.
func build(t *testing.T, source string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	src, out := filepath.Join(dir, "p.c"), filepath.Join(dir, "p")
	require.NoError(t, os.WriteFile(src, []byte(source), 0o644))
	testutil.Compile(t, out, "gcc", append([]string{"-O1", src}, flags...)...)
	return out
}

// start runs a program until the end of the test and waits for its first output line.
func start(t *testing.T, path string, args ...string) int {
	t.Helper()
	cmd := exec.Command(path, args...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	return cmd.Process.Pid
}

const pauser = `
#include <stdio.h>
#include <unistd.h>
int main(void) { puts("ready"); fflush(stdout); for (;;) pause(); }`

func executableMapping(t *testing.T, pid int, path string) Mapping {
	t.Helper()
	for m, err := range (FS{}).Mappings(pid) {
		require.NoError(t, err)
		if m.Path == path && m.Perms&PermExec != 0 {
			return m
		}
	}
	require.Fail(t, "no executable mapping", path)
	return Mapping{}
}

func TestProcess(t *testing.T) {
	path := build(t, pauser)
	pid := start(t, path, "one", "two words")
	st, err := FS{}.Stat(pid)
	require.NoError(t, err)
	require.Equal(t, "p", st.Comm)
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &now))
	require.InDelta(t, float64(now.Nano())/1e7, float64(st.StartTicks), 300*TicksPerSecond)

	status, err := FS{}.Status(pid)
	require.NoError(t, err)
	groups, err := os.Getgroups()
	require.NoError(t, err)
	gids := []uint32{uint32(os.Getgid())}
	for _, gid := range groups {
		gids = append(gids, uint32(gid))
	}
	require.Equal(t, Status{UID: uint32(os.Getuid()), NSPID: pid, TGID: pid, GIDs: gids}, status)
	args, more, err := FS{}.CommandLine(pid, 1000)
	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, []string{path, "one", "two words"}, args)
	exe, deleted, err := FS{}.Executable(pid)
	require.NoError(t, err)
	require.False(t, deleted)
	require.Equal(t, path, exe)
	_, err = FS{}.Cgroup(pid)
	require.NoError(t, err)
}

func TestOpenMapped(t *testing.T) {
	want := func(t *testing.T, path string) []byte {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return data
	}
	read := func(t *testing.T, pid int, m Mapping) []byte {
		id, err := FS{}.StatMapped(pid, m)
		require.NoError(t, err)
		file, err := FS{}.OpenMapped(pid, m, id)
		require.NoError(t, err)
		defer file.Close()
		same, err := Identify(file)
		require.NoError(t, err)
		require.Equal(t, id, same)
		data, err := io.ReadAll(file)
		require.NoError(t, err)
		require.Equal(t, id.Size, int64(len(data)))
		return data
	}
	// byPath names no map_files entry, so that the file has to be found by its path.
	byPath := func(m Mapping) Mapping { m.Limit += 0x1000; return m }

	t.Run("map_files", func(t *testing.T) {
		path := build(t, pauser)
		pid := start(t, path)
		require.Equal(t, want(t, path), read(t, pid, executableMapping(t, pid, path)))
	})
	t.Run("by path", func(t *testing.T) {
		path := build(t, pauser)
		pid := start(t, path)
		require.Equal(t, want(t, path), read(t, pid, byPath(executableMapping(t, pid, path))))
	})
	t.Run("newline in the path", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new\nline (deleted)")
		require.NoError(t, os.Rename(build(t, pauser), path))
		pid := start(t, path)
		m := executableMapping(t, pid, strings.TrimSuffix(path, " (deleted)")) // ambiguous by design
		require.Equal(t, want(t, path), read(t, pid, m))
	})
	t.Run("deleted", func(t *testing.T) {
		path := build(t, pauser)
		data := want(t, path)
		pid := start(t, path)
		require.NoError(t, os.Remove(path))
		m := executableMapping(t, pid, path)
		require.Equal(t, data, read(t, pid, m))
		_, err := FS{}.OpenMapped(pid, byPath(m), FileID{})
		require.ErrorIs(t, err, os.ErrNotExist)
	})
	t.Run("replaced", func(t *testing.T) {
		path := build(t, pauser)
		pid := start(t, path)
		m := executableMapping(t, pid, path)
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path+"2", []byte("other"), 0o755))
		require.NoError(t, os.Rename(path+"2", path))
		_, err := FS{}.StatMapped(pid, byPath(m))
		require.ErrorIs(t, err, ErrReplaced)
		_, err = FS{}.OpenMapped(pid, byPath(m), FileID{})
		require.ErrorIs(t, err, ErrReplaced)
	})
	t.Run("FIFO", func(t *testing.T) {
		path := build(t, pauser)
		pid := start(t, path)
		m := executableMapping(t, pid, path)
		require.NoError(t, os.Remove(path))
		require.NoError(t, unix.Mkfifo(path, 0o644))
		done := make(chan error)
		go func() {
			_, err := FS{}.OpenMapped(pid, byPath(m), FileID{})
			done <- err
		}()
		select {
		case err := <-done:
			require.ErrorIs(t, err, ErrNotRegular)
		case <-time.After(time.Minute):
			require.Fail(t, "blocked in a FIFO")
		}
	})
	t.Run("link through /proc", func(t *testing.T) {
		path := build(t, pauser)
		pid := start(t, path)
		m := executableMapping(t, pid, path)
		require.NoError(t, os.Rename(path, path+".real"))
		require.NoError(t, os.Symlink("/proc/self/exe", path))
		_, err := FS{}.OpenMapped(pid, byPath(m), FileID{})
		require.ErrorIs(t, err, ErrReplaced, "it says what we run, which is another file")
	})
	t.Run("another one than was identified", func(t *testing.T) {
		path := build(t, pauser)
		pid := start(t, path)
		m := executableMapping(t, pid, path)
		id, err := FS{}.StatMapped(pid, m)
		require.NoError(t, err)
		id.CtimeNs++
		watch, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_CLOEXEC)
		require.NoError(t, err)
		defer unix.Close(watch)
		require.NoError(t, unix.FanotifyMark(watch, unix.FAN_MARK_ADD, unix.FAN_OPEN, unix.AT_FDCWD, path))
		for _, m := range []Mapping{m, byPath(m)} {
			_, err = FS{}.OpenMapped(pid, m, id)
			require.ErrorIs(t, err, ErrReplaced)
		}
		require.NotContains(t, openers(t, watch), int32(os.Getpid()), "it was opened")
	})
	t.Run("no file", func(t *testing.T) {
		_, err := FS{}.OpenMapped(1, Mapping{Start: 1, Limit: 2}, FileID{})
		require.ErrorIs(t, err, ErrNoFile)
	})
}

// openers returns the processes that have opened what is watched; others may follow what runs, too.
func openers(t *testing.T, watch int) (pids []int32) {
	t.Helper()
	for {
		var ev unix.FanotifyEventMetadata
		b := unsafe.Slice((*byte)(unsafe.Pointer(&ev)), unsafe.Sizeof(ev)) // room for one
		_, err := unix.Read(watch, b)
		if errors.Is(err, unix.EAGAIN) {
			return pids
		}
		require.NoError(t, err)
		require.NoError(t, unix.Close(int(ev.Fd)))
		pids = append(pids, ev.Pid)
	}
}

func TestGone(t *testing.T) {
	cmd := exec.Command("sleep", "100")
	require.NoError(t, cmd.Start())
	pid := cmd.Process.Pid
	kept, err := FS{}.open(pid, "stat")
	require.NoError(t, err)
	defer kept.Close()
	cmd.Process.Kill()
	cmd.Wait()

	_, err = kept.Read(make([]byte, 10))
	require.ErrorIs(t, gone(err), ErrNoProcess)
	_, err = FS{}.Stat(pid)
	require.ErrorIs(t, err, ErrNoProcess)
	_, _, err = FS{}.Executable(pid)
	require.ErrorIs(t, err, ErrNoProcess)
	_, err = FS{}.LiveThread(pid)
	require.ErrorIs(t, err, ErrNoProcess)
	for _, err := range (FS{}).Mappings(pid) {
		require.ErrorIs(t, err, ErrNoProcess)
	}
	require.ErrorIs(t, Memory{pid}.ReadAt(make([]byte, 1), 0x1000), ErrNoProcess)
}

// awaitZombie waits until the first thread of a program has exited: pthread_join returns somewhat earlier.
func awaitZombie(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		st, err := FS{}.Stat(pid)
		return err == nil && st.State == 'Z'
	}, time.Minute, time.Millisecond)
}

// buildDeadLeader builds a program whose first thread is exiting when it says that it is ready.
func buildDeadLeader(t *testing.T) string {
	t.Helper()
	return build(t, `
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *run(void *leader) {
	pthread_join((pthread_t)leader, NULL);
	puts("ready"); fflush(stdout);
	for (;;) pause();
}
int main(void) {
	pthread_t t;
	pthread_create(&t, NULL, run, (void *)pthread_self());
	pthread_exit(NULL);
}`, "-pthread")
}

func TestDeadLeader(t *testing.T) {
	path := buildDeadLeader(t)
	pid := start(t, path)
	awaitZombie(t, pid)
	tid, err := FS{}.LiveThread(pid)
	require.NoError(t, err)
	require.NotEqual(t, pid, tid)
	executableMapping(t, tid, path)
	_, _, err = FS{}.Executable(tid)
	require.NoError(t, err)
}

// Cgroup v1 says that a thread that has exited is in the root: the process stays in its container as long as it runs.
func TestCgroupOfDeadLeader(t *testing.T) {
	testutil.RequireRoot(t)
	testutil.Need(t, testutil.CgroupV1)
	hierarchy := t.TempDir()
	require.NoError(t, unix.Mount("none", hierarchy, "cgroup", 0, testutil.CgroupV1Options))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(hierarchy, 0)) })
	id := strings.Repeat("c0ffee42", 8)
	group := filepath.Join(hierarchy, id)
	require.NoError(t, os.Mkdir(group, 0o755))
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.Remove(group) == nil }, time.Minute, time.Millisecond)
	})
	pid := start(t, "/bin/sh", "-c", `echo $$ >"$1"; exec "$2"`, "sh", filepath.Join(group, "cgroup.procs"), buildDeadLeader(t))
	awaitZombie(t, pid)
	said, err := FS{}.cgroup(pid)
	require.NoError(t, err)
	require.NotContains(t, said, id, "else there is nothing to see here")
	of, err := FS{}.Cgroup(pid)
	require.NoError(t, err)
	require.Equal(t, id, of.ContainerID)
}

func TestMemory(t *testing.T) {
	want := []byte("something to read")
	self := Memory{PID: os.Getpid()}
	got := make([]byte, len(want))
	require.NoError(t, self.ReadAt(got, uint64(uintptr(unsafe.Pointer(&want[0])))))
	require.Equal(t, want, got)
	runtime.KeepAlive(want)
	require.NoError(t, self.ReadAt(nil, 0))
	require.ErrorIs(t, self.ReadAt(got, 8), ErrFault)
	require.ErrorIs(t, self.ReadAt(got, 1<<64-4), ErrFault)

	page, err := unix.Mmap(-1, 0, 2*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	defer unix.Munmap(page)
	require.NoError(t, unix.Mprotect(page[os.Getpagesize():], unix.PROT_NONE))
	end := uint64(uintptr(unsafe.Pointer(&page[0]))) + uint64(os.Getpagesize())
	require.NoError(t, self.ReadAt(got[:4], end-4))
	require.ErrorIs(t, self.ReadAt(got[:8], end-4), ErrFault, "a partial read is no read")
}

func TestEnvironment(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{"A=1", "OTEL_SERVICE_NAME=shop=1", "EMPTY=", "LONG=" + strings.Repeat("x", 1000), "LAST=y"}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	all := []string{"A", "OTEL_SERVICE_NAME", "EMPTY", "LONG", "LAST", "NONE"}
	read := func(limit int, wantCut bool, names ...string) map[string]string {
		// An exec is shown before its environment is.
		for range 60_000 {
			env, cut, err := FS{}.Environment(cmd.Process.Pid, limit, names...)
			require.NoError(t, err)
			if len(env) > 0 {
				require.Equal(t, wantCut, cut)
				return env
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	}
	require.Equal(t, map[string]string{
		"A": "1", "OTEL_SERVICE_NAME": "shop=1", "EMPTY": "", "LONG": strings.Repeat("x", 1000), "LAST": "y",
	}, read(64<<10, false, all...))
	require.Equal(t, map[string]string{"A": "1", "OTEL_SERVICE_NAME": "shop=1", "EMPTY": ""}, read(100, true, all...), "nothing that is cut")
	require.Equal(t, map[string]string{"A": "1", "EMPTY": ""}, read(100, false, "A", "EMPTY"), "what follows was not asked for")
	_, _, err := FS{}.Environment(1<<22+1, 100, "A")
	require.ErrorIs(t, err, ErrNoProcess)
}
