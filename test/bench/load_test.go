//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/labelstates"
)

// pauseTimeout is for a machine with very much else to do.
const pauseTimeout = 2 * time.Minute

// writerSeconds is longer than any of these tests.
const writerSeconds = "3600"

// A load is copies of one writer, one pinned to each CPU.
type load struct {
	t    *testing.T
	pids []int
}

// startLoad starts the copies; they run until the test ends or pause is called.
func startLoad(t *testing.T, variant string, args ...string) *load {
	t.Helper()
	path := filepath.Join(testutil.BuildWriters(t), variant)
	return startCopies(t, path, append([]string{"spin", "--threads", "1", "--seconds", writerSeconds}, args...)...)
}

// startCopies is startLoad for any program.
func startCopies(t *testing.T, path string, args ...string) *load {
	t.Helper()
	l := &load{t: t}
	for cpu := range runtime.NumCPU() {
		w := testutil.StartPath(t, path, args...)
		pin(t, w.PID, cpu)
		l.pids = append(l.pids, w.PID)
	}
	return l
}

// startStates is startLoad for a state of testdata/bpf/target.c, and tells where its
// label source is.
func startStates(t *testing.T, path, state, abi string) (l *load, offset int64) {
	t.Helper()
	l = &load{t: t}
	for cpu := range runtime.NumCPU() {
		target := labelstates.Start(t, path, state, writerSeconds)
		pin(t, target.PID, cpu)
		l.pids, offset = append(l.pids, target.PID), target.Offsets[abi]
	}
	return l, offset
}

// pin keeps all threads of a process on one CPU.
func pin(t *testing.T, pid, cpu int) {
	t.Helper()
	var set unix.CPUSet
	set.Set(cpu)
	eachThread(t, pid, func(tid int) { require.NoError(t, unix.SchedSetaffinity(tid, &set)) })
}

func eachThread(t *testing.T, pid int, do func(tid int)) {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	require.NoError(t, err)
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		require.NoError(t, err)
		do(tid)
	}
}

func (l *load) has(pid uint32) bool {
	return slices.Contains(l.pids, int(pid))
}

// cpuTime is how long the copies have run, on all CPUs together.
func (l *load) cpuTime() (sum time.Duration) {
	l.t.Helper()
	for _, pid := range l.pids {
		sum += cpuTime(l.t, pid)
	}
	return sum
}

// pause stops the copies; when it returns, none runs any more.
func (l *load) pause() {
	l.t.Helper()
	l.signal(syscall.SIGSTOP)
	for _, pid := range l.pids {
		require.Eventually(l.t, func() bool { return stopped(l.t, pid) }, pauseTimeout, time.Millisecond)
	}
}

func (l *load) resume() { l.signal(syscall.SIGCONT) }

func (l *load) signal(s syscall.Signal) {
	l.t.Helper()
	for _, pid := range l.pids {
		require.NoError(l.t, syscall.Kill(pid, s))
	}
}

// stopped reports whether every thread of a process is.
func stopped(t *testing.T, pid int) bool {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	require.NoError(t, err)
	for _, thread := range threads {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, thread.Name()))
		require.NoError(t, err)
		_, state, _ := strings.Cut(string(stat), ") ")
		if !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}
