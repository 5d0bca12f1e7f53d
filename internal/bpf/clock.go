//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
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
	fd     int
	link   *link.RawLink // nil before Linux 5.15
	readNs uint64        // at the last call of alive
	hits   uint64        // of the program on the CPU, when they were looked at last
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
	if err := c.attach(prog); err != nil {
		return nil, errors.Join(fmt.Errorf("attach to perf event on CPU %d: %w", cpu, err), c.close())
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("enable perf event on CPU %d: %w", cpu, err), c.close())
	}
	return c, nil
}

// attach runs prog at the event's ticks. Before Linux 5.15 events have no links; what is
// attached without one goes with the event.
func (c *clock) attach(prog *ebpf.Program) (err error) {
	c.link, err = link.AttachRawLink(link.RawLinkOptions{Target: c.fd, Program: prog, Attach: ebpf.AttachPerfEvent})
	if err != nil && unix.IoctlSetInt(c.fd, unix.PERF_EVENT_IOC_SET_BPF, prog.FD()) == nil {
		return nil
	}
	return err
}

// alive reports whether the event has counted since the last call. The kernel
// removes the events of a CPU that goes offline, and does not put them back when
// it returns: a CPU that was away between two calls is told by that alone.
func (c *clock) alive() (bool, error) {
	var b [8]byte
	// The kernel waits for the event's CPU to answer. Where that is slow, as a virtual one that does not run, the
	// runtime has to know: until a raw call returns, it cannot stop this thread to collect garbage.
	if _, err := unix.Read(c.fd, b[:]); err != nil {
		return false, fmt.Errorf("read perf event: %w", err)
	}
	before := c.readNs
	c.readNs = binary.NativeEndian.Uint64(b[:])
	return c.readNs != before, nil
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

// UpdateCPUs follows CPU hotplug: it attaches to CPUs that came online, by the third
// call also to those that were away for an instant, and lets go of those that went. It
// reports whether mappings may have been made there of which no event tells.
// Before Start and after Stop it does nothing else. Calls are to be a millisecond
// or more apart.
func (s *Sampler) UpdateCPUs() (mappingsLost bool, _ error) {
	err := s.followCPUs()
	return s.sideband.takeLost(), err
}

func (s *Sampler) followCPUs() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clocks == nil {
		return nil
	}
	cpus, err := s.online.read()
	if err != nil {
		return err
	}
	counts, err := s.cpuCounters(s.objs.Counts)
	if err != nil {
		return err
	}
	online := make(map[int]bool, len(cpus))
	var errs []error
	for _, cpu := range cpus {
		online[cpu] = true
		errs = append(errs, s.updateCPU(cpu, counts))
	}
	for cpu := range s.clocks {
		if !online[cpu] {
			errs = append(errs, s.dropCPU(cpu))
		}
	}
	return errors.Join(append(errs, s.sideband.follow(cpus))...)
}

// CPUs is how many are sampled.
func (s *Sampler) CPUs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clocks)
}

// updateCPU makes sure that an online CPU is sampled. Its clock is asked only if the program has not run there since the
// last call: that interrupts the CPU.
func (s *Sampler) updateCPU(cpu int, counts []profilerCounters) error {
	if cpu >= s.cpus.Room {
		return fmt.Errorf("CPU %d is not sampled: it came online after the start, beyond the %d CPUs that maps were sized for; restart the collector", cpu, s.cpus.Room)
	}
	hits := counts[cpu].Value[profilerCounterCOUNTER_HITS]
	if c := s.clocks[cpu]; c != nil {
		if c.hits != hits {
			c.hits = hits
			return nil
		}
		alive, err := c.alive()
		if alive || err != nil {
			return err
		}
		if err := s.dropCPU(cpu); err != nil {
			return err
		}
	}
	c, err := openClock(cpu, s.config.Period(), s.objs.SampleCpu)
	if errors.Is(err, unix.ENODEV) {
		return nil // offline again
	}
	if err != nil {
		return err
	}
	s.clocks[cpu] = c
	return nil
}

func (s *Sampler) dropCPU(cpu int) error {
	err := s.clocks[cpu].close()
	delete(s.clocks, cpu)
	return errors.Join(err, s.sideband.drop(cpu))
}
