//go:build linux && (amd64 || arm64)

package labelread_test

import "golang.org/x/sys/unix"

// monotonic is the clock of samples.
func monotonic() (uint64, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano()), err
}
