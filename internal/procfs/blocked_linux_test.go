package procfs_test

import (
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// A thread that waits for a CPU, or for a lock of ours, is not blocked by a process.
func TestBlocked(t *testing.T) {
	require.True(t, procfs.Blocked(math.MaxInt32), "no thread")
	eventually := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, time.Minute, time.Millisecond, what)
	}
	tids := make(chan int)
	var end sync.WaitGroup
	defer end.Wait()
	waitFor := func(wait func()) (tid int) {
		end.Go(func() {
			runtime.LockOSThread() // and ends with it
			tids <- procfs.Thread()
			wait()
		})
		return <-tids
	}
	lock := make(chan struct{})
	defer close(lock)
	tid := waitFor(func() { <-lock })
	eventually("another goroutine", func() bool { return !procfs.Blocked(tid) })
	var spun atomic.Bool
	defer spun.Store(true)
	tid = waitFor(func() {
		for !spun.Load() {
			continue
		}
	})
	eventually("it runs, or waits for a CPU", func() bool { return !procfs.Blocked(tid) })
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	defer r.Close()
	fd := int(r.Fd()) // reading blocks from now on
	tid = waitFor(func() { _, _ = unix.Read(fd, make([]byte, 1)) })
	eventually("a system call", func() bool { return procfs.Blocked(tid) })
	_, err = w.WriteString("x")
	require.NoError(t, err)
}
