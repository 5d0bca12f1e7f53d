package wakeup

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Waiter waits for its descriptor and for ticks. Wait is for one goroutine, the other methods
// are for all.
type Waiter struct {
	interval time.Duration
	epoll    *os.File // of the timer and the descriptor, in Go's poller
	conn     syscall.RawConn
	over     func(uintptr) bool // made once: a wait allocates nothing

	// Of this wait.
	ready         func() bool
	woken, ticked bool

	mu     sync.Mutex
	timer  int
	closed bool
}

// New returns one with a tick in each interval, the first after one. If fd is not negative, it
// waits for that, too; the descriptor stays the caller's.
func New(interval time.Duration, fd int) (*Waiter, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make epoll descriptor: %w", err)
	}
	if err := unix.SetNonblock(epoll, true); err != nil { // else the poller does not take it
		return nil, errors.Join(fmt.Errorf("set not to block: %w", err), unix.Close(epoll))
	}
	w := &Waiter{interval: interval, epoll: os.NewFile(uintptr(epoll), "wake-ups")}
	w.over = w.isOver
	if w.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("make timer: %w", err), w.epoll.Close())
	}
	errs := []error{w.set(interval), watch(epoll, w.timer)}
	if fd >= 0 {
		errs = append(errs, watch(epoll, fd))
	}
	w.conn, err = w.epoll.SyscallConn()
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func watch(epoll, fd int) error {
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("watch descriptor: %w", err)
	}
	return nil
}

// set has the timer tell after some time, and then in each interval.
func (w *Waiter) set(after time.Duration) error {
	value := unix.ItimerSpec{Interval: unix.NsecToTimespec(int64(w.interval)), Value: unix.NsecToTimespec(int64(after))}
	if err := unix.TimerfdSettime(w.timer, 0, &value, nil); err != nil {
		return fmt.Errorf("set timer: %w", err)
	}
	return nil
}

// Wait returns when ready reports true, which is asked first and at each wake-up; or, if it is
// nil or not true, at the next wake-up all the same, by the descriptor or a tick. It reports
// whether a tick has come since it reported one. It returns an error after Close.
func (w *Waiter) Wait(ready func() bool) (ticked bool, err error) {
	w.ready, w.woken, w.ticked = ready, false, false
	if err := w.conn.Read(w.over); err != nil {
		return false, fmt.Errorf("wait: %w", err)
	}
	return w.ticked, nil
}

// isOver reports whether a wait is over. The poller forgets wake-ups from before the wait; a
// tick that came then is still in the timer, which makes no other until it is taken.
func (w *Waiter) isOver(uintptr) bool {
	w.ticked = w.ticked || w.takeTick()
	over := w.woken || w.ticked || w.ready != nil && w.ready()
	w.woken = true
	return over
}

// takeTick also has the kernel make the next one.
func (w *Waiter) takeTick() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	var ticks [8]byte
	_, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(w.timer), uintptr(unsafe.Pointer(&ticks[0])), uintptr(len(ticks)))
	return errno == 0
}

// Tick makes one now, and the next one an interval later.
func (w *Waiter) Tick() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	return w.set(1)
}

// Close ends a wait with an error. It may be called twice.
func (w *Waiter) Close() error {
	w.mu.Lock()
	closed := w.closed
	w.closed = true
	w.mu.Unlock() // a wait that takes a tick now needs it, and the file's Close waits for the wait
	if closed {
		return nil
	}
	return errors.Join(w.epoll.Close(), unix.Close(w.timer))
}
