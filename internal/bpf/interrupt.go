//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// interruptCPUs returns when every CPU has taken an interrupt since the call: what ran
// with interrupts off, as switches of threads do, has come to its end. To open a perf
// event is the way to ask for that: the kernel interrupts the event's CPU and waits
// (perf_install_in_context). A wait for RCU would say the same, but takes up to minutes on
// a machine that does nothing but switch.
func interruptCPUs() error {
	cpus, err := readCPUs(onlineCPUsPath)
	if err != nil {
		return err
	}
	attr := unix.PerfEventAttr{ // enabled: what is not is installed without an interrupt
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_DUMMY,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
	}
	var errs []error
	for _, cpu := range cpus {
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ENODEV) {
			continue // offline: nothing runs there
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("interrupt CPU %d: %w", cpu, err))
			continue
		}
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
