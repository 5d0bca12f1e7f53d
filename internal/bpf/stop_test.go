//go:build linux && (amd64 || arm64)

package bpf

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Nothing runs after Stop, even while another process has copies of the descriptors: a
// child has until it executes its program.
func TestStopWithCopies(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: MaxSamplesPerSecond, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Start())
	require.NotEmpty(t, s.clocks)
	for _, c := range s.clocks {
		for _, fd := range []int{c.fd, c.link.FD()} {
			copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, unix.Close(copied)) })
		}
	}
	require.NoError(t, s.Stop())
	before, err := s.Counters()
	require.NoError(t, err)
	useCPU(t, 50*time.Millisecond) // of which a clock that goes on would make hundreds of hits
	after, err := s.Counters()
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// useCPU returns when the calling thread has used so much CPU time.
func useCPU(t *testing.T, long time.Duration) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() int64 {
		var now unix.Timespec
		require.NoError(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now))
		return now.Nano()
	}
	for end := used() + int64(long); used() < end; {
	}
}
