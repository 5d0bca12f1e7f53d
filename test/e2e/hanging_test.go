//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	attacker = 65534
	// hangingProcesses are more than there are places for one user.
	hangingProcesses = 24
	// hangingDelay is what they may cost another user's new process.
	hangingDelay = time.Second
	// victims are the new processes, before and after.
	victims = 5
)

// compileProgram builds a C program that everybody may run.
func compileProgram(t *testing.T, source string, flags ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "program")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // other users run what is in it
	path := filepath.Join(dir, "program")
	testutil.Compile(t, path, "gcc", append(flags, "-O1", source)...)
	return path
}

// firstLabels notes when processes had a label first.
type firstLabels struct {
	mu sync.Mutex
	at map[int64]uint64 // Unix ns, by PID
}

func (f *firstLabels) visit(b flatBatch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range b.hits {
		h := &b.hits[i]
		if _, known := f.at[h.pid]; !known && h.attrs[prefix+"tenant"] != "" {
			f.at[h.pid] = h.timeUnixNano
		}
	}
}

// after runs a new program of another user and returns how long it took until a sample of
// it had its label.
func (f *firstLabels) after(t *testing.T, program []byte) time.Duration {
	t.Helper()
	dir := userDir(t, quietUser)
	path := filepath.Join(dir, "program")                  // a file that nobody has seen
	require.NoError(t, os.WriteFile(path, program, 0o755)) //nolint:gosec // the other user runs it
	cmd := exec.Command(path, "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: quietUser, Gid: quietUser},
	}
	began := time.Now()
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	first := func() (uint64, bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		at, ok := f.at[int64(cmd.Process.Pid)]
		return at, ok
	}
	require.Eventually(t, func() bool { _, ok := first(); return ok }, 2*time.Minute, 5*time.Millisecond,
		"no sample of a new process has its label")
	at, _ := first()
	return time.Duration(int64(at) - began.UnixNano())
}

// median returns the middle one of the delays of new processes.
func (f *firstLabels) median(t *testing.T, program []byte) time.Duration {
	t.Helper()
	return f.delays(t, program)[victims/2]
}

// delays returns those of new processes, the longest last.
func (f *firstLabels) delays(t *testing.T, program []byte) (delays []time.Duration) {
	t.Helper()
	for range victims {
		delays = append(delays, f.after(t, program))
	}
	fmt.Printf("first label after %v\n", delays)
	slices.Sort(delays)
	return delays
}

// hangingCrowd are processes of one user, the attacker, of which something never answers whoever
// reads it, until end is called.
type hangingCrowd struct {
	pids map[int64]bool
	cmds []*exec.Cmd
}

// start runs a program that says "ready", with further PIDs if it has children, and waits for it.
func (c *hangingCrowd) start(t *testing.T, program string, args ...string) (ready func()) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c.cmds = append(c.cmds, cmd)
	c.pids[int64(cmd.Process.Pid)] = true
	return func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		words := strings.Fields(line)
		require.NotEmpty(t, words)
		require.Equal(t, "ready", words[0])
		for _, word := range words[1:] {
			pid, err := strconv.ParseInt(word, 10, 64)
			require.NoError(t, err)
			c.pids[pid] = true
		}
	}
}

// named returns how many log entries name one of these processes, as the attacker's. On a busy host
// others may be late, too, but not those that run beside them here.
func (c *hangingCrowd) named(t *testing.T, logs *observer.ObservedLogs) (n int) {
	t.Helper()
	for _, message := range []string{"does not let itself be read", "with names of functions does not answer"} {
		for _, entry := range logs.FilterMessageSnippet(message).All() {
			fields := entry.ContextMap()
			if !c.pids[fields["pid"].(int64)] {
				require.NotEqualValues(t, quietUser, fields["uid"], "%v", fields)
				continue
			}
			require.EqualValues(t, attacker, fields["uid"], "%v", fields)
			n++
		}
	}
	return n
}

func (c *hangingCrowd) end() {
	for _, cmd := range c.cmds {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	c.cmds = nil
}

// startUnserved has processes with memory that nobody serves.
func startUnserved(t *testing.T) *hangingCrowd {
	unserved := compileProgram(t, "../../testdata/hostile/unserved.c")
	c := &hangingCrowd{pids: map[int64]bool{}}
	t.Cleanup(c.end)
	var ready []func()
	for range hangingProcesses {
		ready = append(ready, c.start(t, unserved, strconv.Itoa(attacker)))
	}
	for _, wait := range ready {
		wait()
	}
	return c
}

// startUnanswered has processes of executables in a FUSE file system that answers nobody else.
func startUnanswered(t *testing.T) *hangingCrowd { return startFUSE(t, hangingProcesses) }

// startFUSE has so many processes of executables in a FUSE file system.
func startFUSE(t *testing.T, processes int, options ...string) *hangingCrowd {
	server := compileProgram(t, "../../testdata/hostile/fuse.c")
	program := compileProgram(t, "../../testdata/replaced/program.c", "-rdynamic")
	dir := userDir(t, attacker)
	c := &hangingCrowd{pids: map[int64]bool{}}
	t.Cleanup(func() {
		c.end()
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	})
	args := append([]string{program, dir, strconv.Itoa(attacker), strconv.Itoa(processes)}, options...)
	c.start(t, server, args...)()
	require.Len(t, c.pids, 1+processes)
	return c
}

// TestHostileHanging: processes of one user that never answer whoever reads their memory, or
// their executables. New processes of another user have their first label as if there were
// none; who hangs is named in the log, and their number is in the metrics; and a receiver ends
// though they hang.
func TestHostileHanging(t *testing.T) {
	testutil.RequireBPF(t)
	t.Run("memory", func(t *testing.T) {
		testutil.Need(t, testutil.Userfaultfd)
		testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) { measureHanging(t, bounds, startUnserved) })
	})
	t.Run("files", func(t *testing.T) {
		testutil.Need(t, testutil.FUSE)
		testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) { measureHanging(t, bounds, startUnanswered) })
	})
}

func measureHanging(t *testing.T, bounds *testutil.Bounds, startCrowd func(*testing.T) *hangingCrowd) {
	program, err := os.ReadFile(compileProgram(t, "../../testdata/replaced/program.c", "-rdynamic"))
	require.NoError(t, err)
	first := &firstLabels{at: map[int64]uint64{}}
	r := startReceiver(t, &sink{t: t, visit: first.visit}, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 997
		c.ReportInterval = 200 * time.Millisecond
	})
	without := first.median(t, program)

	crowd := startCrowd(t)
	with := first.median(t, program)
	fmt.Printf("first label of a new process: median %v, beside %d processes that hang %v\n", without, hangingProcesses, with)
	require.LessOrEqual(bounds, with, without+hangingDelay)

	var counted map[string]int64
	hanging := func() int64 {
		counted = r.metric("hanging", "kind")
		return counted["process"] + counted["file"]
	}
	require.Eventually(t, func() bool { return hanging() > 0 }, 2*time.Minute, 50*time.Millisecond, "those that hang are counted")
	named := 0
	require.Eventually(t, func() bool { named = crowd.named(t, r.logs); return named > 0 }, time.Minute, 50*time.Millisecond, "and told")
	fmt.Printf("hanging: %v; %d named\n", counted, named)
	crowd.end()
	require.Eventually(t, func() bool { return hanging() == 0 }, time.Minute, 50*time.Millisecond)

	startCrowd(t)
	require.Eventually(t, func() bool { return hanging() > 0 }, 2*time.Minute, 50*time.Millisecond, "the next ones are, too")
	r.stop()
	requireClosed(t, r.account())
}

// TestHostilePoll: a FUSE file system answers all that is needed to read an executable, but not whether it is ready to
// be read. Nobody asks: Go's poller would, with a lock that all of the collector needs.
func TestHostilePoll(t *testing.T) {
	const processes = 2
	testutil.RequireBPF(t)
	testutil.Need(t, testutil.FUSE)
	first := &firstLabels{at: map[int64]uint64{}}
	r := startReceiver(t, &sink{t: t, visit: first.visit}, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 97
		c.ReportInterval = 200 * time.Millisecond
	})
	crowd := startFUSE(t, processes, "600")
	labelled := func() (n int) {
		first.mu.Lock()
		defer first.mu.Unlock()
		for pid := range first.at {
			if crowd.pids[pid] {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return labelled() == processes }, 5*time.Minute, 50*time.Millisecond,
		"the executables were read")
	r.stop()
	requireClosed(t, r.account())
}
