package wakeup

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Timer is one of the kernel's that expires once. Who waits for other descriptors waits for
// it, too.
type Timer struct{ fd int }

// NewTimer returns one that is not set.
func NewTimer() (Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return Timer{}, fmt.Errorf("make timer: %w", err)
	}
	return Timer{fd}, nil
}

// FD is its descriptor, which can be read once the timer has expired, and until Expired is called.
func (t Timer) FD() int { return t.fd }

// Set has it expire after a time, 0: never. It wakes nobody before.
func (t Timer) Set(after time.Duration) {
	t.set(0, unix.ItimerSpec{Value: unix.NsecToTimespec(int64(after))})
}

// SetMultiple has it expire at the next multiple of a time on the clock, where ticks of that interval
// come.
func (t Timer) SetMultiple(of time.Duration) {
	t.set(unix.TFD_TIMER_ABSTIME, unix.ItimerSpec{Value: unix.NsecToTimespec(int64(monotonic().Truncate(of) + of))})
}

func (t Timer) set(flags uintptr, value unix.ItimerSpec) {
	// It cannot fail: the descriptor is that of a timer, and the time is one.
	_, _, _ = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(t.fd), flags, uintptr(unsafe.Pointer(&value)), 0, 0, 0)
}

// monotonic is CLOCK_MONOTONIC.
func monotonic() time.Duration {
	var now unix.Timespec
	// It cannot fail: every kernel has this clock.
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&now)), 0)
	return time.Duration(now.Nano())
}

// Expired reports whether it has expired since it was set or asked last.
func (t Timer) Expired() bool {
	var times [8]byte
	_, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(t.fd), uintptr(unsafe.Pointer(&times[0])), uintptr(len(times)))
	return errno == 0
}

// Close releases it; no other method may be called then.
func (t Timer) Close() error { return unix.Close(t.fd) }
