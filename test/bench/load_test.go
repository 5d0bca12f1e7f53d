//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// writerSeconds is longer than any of these tests.
const writerSeconds = "3600"

// A load is copies of one writer, one pinned to each CPU.
type load struct {
	t       *testing.T
	writers []*testutil.Writer
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
		l.writers = append(l.writers, w)
	}
	return l
}

// pin keeps all threads of a process on one CPU.
func pin(t *testing.T, pid, cpu int) {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	require.NoError(t, err)
	var set unix.CPUSet
	set.Set(cpu)
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		require.NoError(t, err)
		require.NoError(t, unix.SchedSetaffinity(tid, &set))
	}
}

func (l *load) has(pid uint32) bool {
	for _, w := range l.writers {
		if w.PID == int(pid) {
			return true
		}
	}
	return false
}

// pause stops the copies; when it returns, none runs any more.
func (l *load) pause() {
	l.t.Helper()
	for _, w := range l.writers {
		w.Signal(syscall.SIGSTOP)
	}
	for _, w := range l.writers {
		require.Eventually(l.t, func() bool { return stopped(l.t, w.PID) }, 10*time.Second, time.Millisecond)
	}
}

func (l *load) resume() {
	for _, w := range l.writers {
		w.Signal(syscall.SIGCONT)
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
