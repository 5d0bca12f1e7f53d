//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A program that was written anew is another one, however alike its file looks: nothing
// that was known of the one before holds for it.
func TestProgramWrittenAnew(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	text, err := os.ReadFile("/bin/cat")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "cat")
	require.NoError(t, os.WriteFile(path, text, 0o755))
	st, err := os.Stat(path)
	require.NoError(t, err)

	key, known := execute(t, s, path)
	require.NotZero(t, key)
	require.False(t, known)
	require.NoError(t, s.SetProgram(key, []record.LabelSource{{ABI: record.ABIV1}}, false))
	again, known := execute(t, s, path)
	require.Equal(t, key, again)
	require.True(t, known)

	time.Sleep(50 * time.Millisecond)           // longer than a tick of the clock of files
	text[len(text)-1]++                         // of what the loader does not look at
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // in place
	require.NoError(t, err)
	_, err = f.WriteAt(text, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.Chtimes(path, time.Time{}, st.ModTime()))
	anew, known := execute(t, s, path)
	require.NotEqual(t, key, anew)
	require.False(t, known, "it began with what was known of the program before")
}

// Two programs that were changed at the same time, to the same size, are two.
func TestProgramsOfOneTime(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	text, err := os.ReadFile("/bin/true")
	require.NoError(t, err)
	var paths [2]string
	for i := range paths {
		paths[i] = filepath.Join(t.TempDir(), "true")
		require.NoError(t, os.WriteFile(paths[i], text, 0o755))
	}
	sameTime := 0
	for n := range 20 { // most of which are within a tick of the clock of files
		for _, path := range paths {
			require.NoError(t, os.Truncate(path, int64(len(text)+n+1)))
		}
		var keys [2]record.FileKey
		for i, path := range paths {
			keys[i], _ = execute(t, s, path)
			require.EqualValues(t, len(text)+n+1, keys[i].Size)
		}
		require.NotEqual(t, keys[0], keys[1])
		keys[0].Inode = keys[1].Inode
		if keys[0] == keys[1] {
			sameTime++
		}
	}
	t.Logf("%d times of the same time", sameTime)
}

// execute runs a program, which ends when there is nothing to read, and returns its key,
// and whether the process began with the label sources of its program.
func execute(t *testing.T, s *Sampler, path string) (key record.FileKey, known bool) {
	t.Helper()
	cmd := exec.Command(path)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for ev := (record.Event{}); ev.Kind != record.EventExec || ev.PID != cmd.Process.Pid; key = ev.Program {
		require.NoError(t, readEvent(s, &ev))
		process := ev.Process
		var entry record.ProcessEntry
		err := s.objs.Processes.Lookup(&process, &entry)
		if err != nil {
			require.ErrorIs(t, err, ebpf.ErrKeyNotExist)
		}
		known = err == nil && entry.Labelled
	}
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
	return key, known
}

// An exec tells where the stack begins, as /proc/PID/stat does in field 28.
func TestStartStack(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	cmd := exec.Command("/bin/cat")
	stdin, err := cmd.StdinPipe() // it waits
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ev := record.Event{}
	for ev.Kind != record.EventExec || ev.PID != cmd.Process.Pid {
		require.NoError(t, readEvent(s, &ev))
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", ev.PID))
	require.NoError(t, err)
	stack, err := strconv.ParseUint(strings.Fields(string(text))[27], 10, 64)
	require.NoError(t, err)
	require.NotZero(t, stack)
	require.Equal(t, stack, ev.StartStack)
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
}

// A file of an overlayfs that somebody has mounted in a user namespace has no name: below it may be a FUSE file system
// whose server does not answer while the file is mapped.
func TestOverlayOfUserNamespace(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	if !testutil.Can(t, testutil.Overlay) {
		return
	}
	base := t.TempDir()
	require.NoError(t, unix.Mount("none", base, "tmpfs", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(base, unix.MNT_DETACH)) })
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		require.NoError(t, os.Mkdir(filepath.Join(base, name), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(base, "lower", "file"), []byte("text"), 0o644))
	const mount = "mount -t overlay none merged -o lowerdir=lower,upperdir=upper,workdir=work && echo && read end"
	named := func(attr *syscall.SysProcAttr) (record.FileKey, error) {
		cmd := exec.Command("sh", "-c", mount)
		cmd.Dir, cmd.SysProcAttr = base, attr
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		defer func() {
			require.NoError(t, in.Close())
			_ = cmd.Wait() // "read" has failed
		}()
		_, err = out.Read(make([]byte, 1))
		require.NoError(t, err)
		f, err := os.Open(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "root", base, "merged", "file"))
		require.NoError(t, err)
		defer f.Close()
		return s.NameFile(f)
	}
	key, err := named(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS})
	require.NoError(t, err)
	require.NotZero(t, key)
	ids := []syscall.SysProcIDMap{{Size: 1}}
	_, err = named(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids})
	require.ErrorIs(t, err, ErrNoFileKey)
}
