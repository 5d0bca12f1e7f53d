package budget

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Clock reads a clock that every kernel has, in ns: CLOCK_THREAD_CPUTIME_ID is what work is charged by. It
// does not block, so that the runtime is not told of it: see package wakeup.
func Clock(id int32) int64 {
	var ts unix.Timespec
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// ThreadTime is the CPU time that a thread of this process has taken, in ns; 0 if it has ended.
func ThreadTime(tid int) int64 {
	const perThread, scheduler = 4, 2 // CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED, include/linux/posix-timers.h
	return Clock(int32(^tid<<3 | perThread | scheduler))
}
