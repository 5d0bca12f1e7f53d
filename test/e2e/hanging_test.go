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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	var delays []time.Duration
	for range victims {
		delays = append(delays, f.after(t, program))
	}
	fmt.Printf("first label after %v\n", delays)
	slices.Sort(delays)
	return delays[victims/2]
}

// TestHostileHanging: processes of one user that never answer whoever reads them. New
// processes of another user have their first label as if there were none; who hangs is
// named in the log, and their number is in the metrics.
func TestHostileHanging(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.Need(t, testutil.Userfaultfd)
	testutil.Measure(t, measureHanging)
}

func measureHanging(t *testing.T, bounds *testutil.Bounds) {
	program, err := os.ReadFile(compileProgram(t, "../../testdata/replaced/program.c", "-rdynamic"))
	require.NoError(t, err)
	unserved := compileProgram(t, "../../testdata/hostile/unserved.c")
	first := &firstLabels{at: map[int64]uint64{}}
	r := startReceiver(t, &sink{t: t, visit: first.visit}, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 997
		c.ReportInterval = 200 * time.Millisecond
	})
	without := first.median(t, program)

	var hanging []*exec.Cmd
	kill := func() {
		for _, cmd := range hanging {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		hanging = nil
	}
	t.Cleanup(kill)
	pids := map[int64]bool{}
	var ready []*bufio.Reader
	for range hangingProcesses {
		cmd := exec.Command(unserved, strconv.Itoa(attacker))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		hanging = append(hanging, cmd)
		pids[int64(cmd.Process.Pid)] = true
		ready = append(ready, bufio.NewReader(out))
	}
	for _, out := range ready {
		line, err := out.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
	}
	with := first.median(t, program)
	fmt.Printf("first label of a new process: median %v, beside %d processes that hang %v\n", without, hangingProcesses, with)
	require.LessOrEqual(bounds, with, without+hangingDelay)

	var counted map[string]int64
	require.Eventually(t, func() bool {
		counted = r.metric("hanging", "kind")
		return counted["process"] > 0
	}, 2*time.Minute, 50*time.Millisecond, "those that hang are counted")
	told := r.logs.FilterMessageSnippet("does not let itself be read").All()
	require.NotEmpty(t, told)
	for _, entry := range told {
		fields := entry.ContextMap()
		require.EqualValues(t, attacker, fields["user"], "%v", fields)
		require.True(t, pids[fields["pid"].(int64)], "%v", fields)
	}
	fmt.Printf("hanging: %v; %d named\n", counted, len(told))
	kill()
	require.Eventually(t, func() bool { return r.metric("hanging", "kind")["process"] == 0 }, time.Minute, 50*time.Millisecond)
	r.stop()
	requireClosed(t, r.account())
}
