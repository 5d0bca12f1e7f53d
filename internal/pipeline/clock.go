//go:build linux && (amd64 || arm64)

package pipeline

import (
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

// monotonicNow is CLOCK_MONOTONIC, in ns.
func monotonicNow() uint64 { return clockNow(unix.CLOCK_MONOTONIC) }

func clockNow(clock int32) uint64 {
	var ts unix.Timespec
	// These clocks always exist, and nothing blocks: see package wakeup.
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0)
	return uint64(ts.Nano())
}

// clockOffset is what turns CLOCK_MONOTONIC into Unix time now. The realtime
// clock is read between two readings of the other, whose middle it is set against.
// When the thread was interrupted in between, that middle is off: the shortest of
// a few tries counts.
func clockOffset() (offset, mono uint64) {
	const tries = 5
	shortest := uint64(math.MaxUint64)
	for range tries {
		before := monotonicNow()
		realtime := clockNow(unix.CLOCK_REALTIME)
		took := monotonicNow() - before
		if took < shortest {
			shortest = took
			mono = before + took/2
			offset = realtime - mono
		}
	}
	return offset, mono
}
