//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// A clock is the perf event of one CPU that runs the sampling program once a period.
type clock struct {
	fd   int
	link *link.RawLink
}

// openClock attaches prog to the CPU clock of a CPU; period is CPU time, fixed.
// The software clock needs no PMU and counts the same everywhere.
func openClock(cpu int, period time.Duration, prog *ebpf.Program) (*clock, error) {
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: uint64(period),
		Bits:   unix.PerfBitDisabled,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open perf event on CPU %d: %w", cpu, err)
	}
	c := &clock{fd: fd}
	c.link, err = link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: prog, Attach: ebpf.AttachPerfEvent})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach to perf event on CPU %d: %w", cpu, err), c.close())
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("enable perf event on CPU %d: %w", cpu, err), c.close())
	}
	return c, nil
}

// close disables the event first: the kernel does that synchronously on the
// event's CPU, so that no run of the program follows.
func (c *clock) close() error {
	var errs []error
	if err := unix.IoctlSetInt(c.fd, unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
		errs = append(errs, fmt.Errorf("disable perf event: %w", err))
	}
	if c.link != nil {
		errs = append(errs, c.link.Close())
	}
	return errors.Join(append(errs, unix.Close(c.fd))...)
}

// UpdateCPUs follows CPU hotplug: it attaches to CPUs that came online and lets
// go of those that went. Before Start and after Stop it does nothing.
func (s *Sampler) UpdateCPUs() error {
	cpus, err := readCPUs(onlineCPUsPath)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clocks == nil {
		return nil
	}
	online := make(map[int]bool, len(cpus))
	var errs []error
	for _, cpu := range cpus {
		online[cpu] = true
		if s.clocks[cpu] != nil {
			continue
		}
		c, err := openClock(cpu, s.config.Period(), s.objs.SampleCpu)
		if errors.Is(err, unix.ENODEV) {
			continue // offline again
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.clocks[cpu] = c
	}
	for cpu, c := range s.clocks {
		if !online[cpu] {
			errs = append(errs, c.close())
			delete(s.clocks, cpu)
		}
	}
	return errors.Join(append(errs, s.sideband.follow(cpus))...)
}
