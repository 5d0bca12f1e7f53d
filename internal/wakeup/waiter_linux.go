package wakeup

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Waiter waits for its descriptor and for ticks. Wait is for one goroutine, the other methods
// are for all.
type Waiter struct {
	interval, slow time.Duration // of ticks, in a hurry and else
	epoll          *os.File      // of the timer and the descriptor, in Go's poller
	conn           syscall.RawConn
	over           func(uintptr) bool // made once: a wait allocates nothing

	// Of this wait.
	ready         func() bool
	woken, ticked bool

	mu          sync.Mutex
	timer       Timer
	hurries     bool          // ticks come in interval
	hurriesTill time.Duration // CLOCK_MONOTONIC
	closed      bool
}

// New returns one with a tick in each interval, the first after one to two of them: at the multiples of
// the interval on the clock, so that one wake-up of a thread serves all that tick. If fd is
// not negative, it waits for that, too; the descriptor stays the caller's.
func New(interval time.Duration, fd int) (*Waiter, error) {
	return NewSlowing(interval, interval, fd)
}

// NewSlowing is New, but after the first tick, others come in a longer interval until Hurry is called.
func NewSlowing(interval, slow time.Duration, fd int) (*Waiter, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make epoll descriptor: %w", err)
	}
	if err := unix.SetNonblock(epoll, true); err != nil { // else the poller does not take it
		return nil, errors.Join(fmt.Errorf("set not to block: %w", err), unix.Close(epoll))
	}
	w := &Waiter{interval: interval, slow: slow, hurries: true, epoll: os.NewFile(uintptr(epoll), "wake-ups")}
	w.over = w.isOver
	if w.timer, err = NewTimer(); err != nil {
		return nil, errors.Join(err, w.epoll.Close())
	}
	w.tickFrom(2 * interval)
	errs := []error{watch(epoll, w.timer.FD())}
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

// tickFrom has the timer tell at the last multiple of the interval that is not after some time from now,
// and then in each interval.
func (w *Waiter) tickFrom(after time.Duration) {
	interval := w.slow
	if w.hurries {
		interval = w.interval
	}
	first := (monotonic() + after).Truncate(interval)
	w.timer.set(unix.TFD_TIMER_ABSTIME, unix.ItimerSpec{
		Interval: unix.NsecToTimespec(int64(interval)), Value: unix.NsecToTimespec(int64(max(first, 1))),
	})
}

// Hurry has ticks come in the shorter interval for some time.
func (w *Waiter) Hurry(during time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.interval == w.slow {
		return
	}
	w.hurriesTill = monotonic() + during
	if !w.hurries {
		w.hurries = true
		w.tickFrom(w.interval)
	}
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
	if !w.timer.Expired() {
		return false
	}
	if w.hurries && w.interval != w.slow && monotonic() >= w.hurriesTill {
		w.hurries = false
		w.tickFrom(w.slow)
	}
	return true
}

// Tick makes one now; the others come when they would have come.
func (w *Waiter) Tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.tickFrom(0) // a time that has passed
	}
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
	return errors.Join(w.epoll.Close(), w.timer.Close())
}
