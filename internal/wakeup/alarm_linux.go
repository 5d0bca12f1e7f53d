package wakeup

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// An Alarm is a Timer with somebody who waits for nothing else.
type Alarm struct {
	file    *os.File // of the timer, in Go's poller
	conn    syscall.RawConn
	expired func(uintptr) bool // made once: a wait allocates nothing

	mu     sync.Mutex
	timer  Timer
	closed bool
}

// NewAlarm returns one that is not set.
func NewAlarm() (*Alarm, error) {
	timer, err := NewTimer()
	if err != nil {
		return nil, err
	}
	a := &Alarm{file: os.NewFile(uintptr(timer.FD()), "alarm"), timer: timer}
	a.expired = a.takeExpiry
	if a.conn, err = a.file.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for timer: %w", err), a.file.Close())
	}
	return a, nil
}

// Set has it expire after a time, 0: never. It wakes nobody before.
func (a *Alarm) Set(after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.timer.Set(after)
	}
}

// Wait returns when it has expired since it was set, or since the last wait, or with an error
// after Close. It is for one goroutine.
func (a *Alarm) Wait() error {
	if err := a.conn.Read(a.expired); err != nil {
		return fmt.Errorf("wait for alarm: %w", err)
	}
	return nil
}

// takeExpiry needs no lock: the file is not closed while it is read.
func (a *Alarm) takeExpiry(uintptr) bool { return a.timer.Expired() }

// Close ends a wait with an error. It may be called twice.
func (a *Alarm) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	return a.file.Close()
}
