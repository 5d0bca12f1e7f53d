package wakeup

import (
	"time"

	"golang.org/x/sys/unix"
)

// Left is the time until the next tick.
func (w *Waiter) Left() (time.Duration, error) {
	var left unix.ItimerSpec
	err := unix.TimerfdGettime(w.timer.FD(), &left)
	return time.Duration(left.Value.Nano()), err
}
