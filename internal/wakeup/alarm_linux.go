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

// An Alarm goes off once, at the time that it was set to last. Wait is for one goroutine at a
// time, the other methods are for all: to set it wakes nobody before it goes off.
type Alarm struct {
	file *os.File // the timer, in Go's poller
	conn syscall.RawConn
	took func(uintptr) bool // made once: a wait allocates nothing

	mu     sync.Mutex
	timer  int
	closed bool
}

// NewAlarm returns one that is not set.
func NewAlarm() (*Alarm, error) {
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make timer: %w", err)
	}
	a := &Alarm{file: os.NewFile(uintptr(timer), "alarm"), timer: timer, took: take}
	if a.conn, err = a.file.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for timer: %w", err), a.file.Close())
	}
	return a, nil
}

// Set has it go off after some time, at once if that is not positive, and no more when it was
// set to before.
func (a *Alarm) Set(after time.Duration) { a.set(max(after, 1)) }

// Clear has it not go off.
func (a *Alarm) Clear() { a.set(0) }

func (a *Alarm) set(after time.Duration) {
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(after))}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return // the descriptor may be another one's
	}
	// It cannot fail: the descriptor is that of a timer, and the time is one.
	_, _, _ = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(a.timer), 0, uintptr(unsafe.Pointer(&value)), 0, 0, 0)
}

// Wait returns when the alarm has gone off, if it has not been set again since. It returns an
// error after Close.
func (a *Alarm) Wait() error {
	if err := a.conn.Read(a.took); err != nil {
		return fmt.Errorf("wait for timer: %w", err)
	}
	return nil
}

// take reports whether a timer has gone off since that was taken last.
func take(timer uintptr) bool {
	var times [8]byte
	_, _, errno := unix.RawSyscall(unix.SYS_READ, timer, uintptr(unsafe.Pointer(&times[0])), uintptr(len(times)))
	return errno == 0
}

// Close ends a wait with an error. It may be called twice.
func (a *Alarm) Close() error {
	a.mu.Lock()
	closed := a.closed
	a.closed = true
	a.mu.Unlock()
	if closed {
		return nil
	}
	return a.file.Close()
}
