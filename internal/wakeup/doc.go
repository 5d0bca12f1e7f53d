// Package wakeup waits for a descriptor, or for a time to pass, at the least cost that a Go
// program can have while it has nothing else to do.
//
// A Go timer is dear then: to be in time, the runtime wakes a thread that polls for it, some
// milliseconds early by the poller's granularity, its monitor, which goes on to look every
// 20 µs whether something runs, and a thread to run what waits: some ten wake-ups in all. A
// timer of the kernel, in Go's poller like any other descriptor, wakes the one thread that
// polls, which runs what waits itself. The monitor also wakes up with a system call of which
// the runtime is told: so those that cannot block are made without it (unix.RawSyscall).
// What comes in intervals comes at their multiples on the clock, so that one wake-up serves all; what
// is due at a time that changes often has an [Alarm], which costs one such call to set.
package wakeup
