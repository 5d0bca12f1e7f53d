package symbol

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the CPU time that the calling thread has had.
func threadTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}
