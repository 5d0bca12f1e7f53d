//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// newPolledSideband has a ring on the CPU of this goroutine, of which Go's poller is not told, and a
// poller in its place.
func newPolledSideband(t *testing.T) (sb *sideband, poller int) {
	t.Helper()
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	sb = s.sideband
	require.NoError(t, sb.follow([]int{onOneCPU(t)}))
	var deleted error
	require.NoError(t, sb.wait.Control(func(outer uintptr) {
		deleted = unix.EpollCtl(int(outer), unix.EPOLL_CTL_DEL, sb.epoll, nil)
	}))
	require.NoError(t, deleted)
	poller, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Close(poller)) })
	require.NoError(t, unix.EpollCtl(poller, unix.EPOLL_CTL_ADD, sb.epoll, &unix.EpollEvent{Events: unix.EPOLLIN}))
	return sb, poller
}

func readable(t *testing.T, fd int, within time.Duration) bool {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(within.Milliseconds()))
		if err != unix.EINTR {
			require.NoError(t, err)
			return n > 0
		}
	}
}

// A mapping that comes when the rings have just been drained wakes the poller; also when wake-ups had
// been kept from it until then.
func TestMappingsWake(t *testing.T) {
	const (
		rounds = 10 // or the mapping of somebody else might wake it
		soon   = 10 * time.Millisecond
	)
	sb, poller := newPolledSideband(t)
	sb.drained = func() {
		mapCode(t)
		time.Sleep(soon) // what wakes is an interrupt, which may come a tick later
	}
	for range rounds {
		for _, gathered := range []bool{false, true} {
			if gathered {
				sb.listen(poller, false)
				mapCode(t)
			}
			_, _, open := sb.take(poller, gathered, nil)
			require.True(t, open)
			require.True(t, readable(t, poller, soon), "a record is unread, and nobody is woken (gathered: %v)", gathered)
		}
	}
}

// Mappings of a CPU that has its ring late, or loses one with something in it, are told to be lost, once.
func TestMappingsLostWithCPU(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	require.NoError(t, s.Start())
	told := func() bool {
		time.Sleep(10 * time.Millisecond) // a clock that has not counted would be taken for one that was away
		lost, err := s.UpdateCPUs()
		require.NoError(t, err)
		return lost
	}
	require.False(t, told(), "all CPUs have had rings from the start")

	cpu := onOneCPU(t)
	require.NoError(t, s.sideband.drop(cpu))
	s.sideband.takeLost() // what others have mapped, unread
	require.True(t, told(), "it had none for a time")
	require.Contains(t, s.sideband.rings, cpu)
	require.False(t, told(), "once")

	s.sideband.drain(nil)
	mapCode(t)
	require.NoError(t, s.sideband.drop(cpu))
	require.True(t, s.sideband.takeLost(), "it was not read")
	require.NoError(t, s.sideband.follow(nil))
	require.Empty(t, s.sideband.rings)
}
