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
	fd    int
	link  *link.RawLink // nil before Linux 5.15
	ticks ticks
}

// openClock attaches prog to the CPU clock of a CPU; period is CPU time, fixed.
// The software clock needs no PMU and counts the same everywhere. hits are those of the CPU so far.
func openClock(cpu int, period time.Duration, prog *ebpf.Program, hits uint64) (*clock, error) {
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
	c := &clock{fd: fd, ticks: ticks{period: period, before: hits}}
	if err := c.attach(prog); err != nil {
		return nil, errors.Join(fmt.Errorf("attach to perf event on CPU %d: %w", cpu, err), c.close())
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("enable perf event on CPU %d: %w", cpu, err), c.close())
	}
	c.ticks.enabled = time.Now() // no tick of before this is due: rather one too few than one too many
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

// look compares the ticks due by now with the hits of the CPU, which were read after it. It reports
// whether the event has counted since the last call. The kernel removes the events of a CPU
// that goes offline, and does not put them back when it returns: a CPU that was away
// between two calls is told by that alone.
func (c *clock) look(now time.Time, hits uint64) (alive bool, _ error) {
	ns, err := c.count()
	if err != nil {
		return false, err
	}
	return c.ticks.look(now, hits, ns), nil
}

// count of the event, in ns.
func (c *clock) count() (uint64, error) {
	var b [8]byte
	// Nothing blocks: see package wakeup.
	_, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return 0, fmt.Errorf("read perf event: %w", errno)
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

// close disables the event first: the kernel does that synchronously on the
// event's CPU, so that no run of the program follows.
func (c *clock) close() error {
	var errs []error
	if err := unix.IoctlSetInt(c.fd, unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
		errs = append(errs, fmt.Errorf("disable perf event: %w", err))
	}
	if ns, err := c.count(); err == nil {
		c.ticks.confirm(ns)
	}
	if c.link != nil {
		errs = append(errs, c.link.Close())
	}
	return errors.Join(append(errs, unix.Close(c.fd))...)
}

// UpdateCPUs follows CPU hotplug: it attaches to CPUs that came online, again to
// those that were away since the last call, and lets go of those that went. It
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
	now := time.Now()
	counted, err := s.perCPU(s.objs.Counts)
	if err != nil {
		return err
	}
	online := make(map[int]bool, len(cpus))
	var errs []error
	for _, cpu := range cpus {
		online[cpu] = true
		errs = append(errs, s.updateCPU(cpu, now, counted))
	}
	for cpu := range s.clocks {
		if !online[cpu] {
			errs = append(errs, s.dropCPU(cpu))
		}
	}
	s.sumMissed()
	return errors.Join(append(errs, s.sideband.follow(cpus))...)
}

// sumMissed makes what clocks have missed until now visible.
func (s *Sampler) sumMissed() {
	sum := s.missedBefore
	for _, c := range s.clocks {
		sum += c.ticks.missed
	}
	s.missed.Store(sum)
}

// CPUs is how many are sampled.
func (s *Sampler) CPUs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clocks)
}

// updateCPU makes sure that an online CPU is sampled. The counters were read after now.
func (s *Sampler) updateCPU(cpu int, now time.Time, counted []profilerCounters) error {
	if cpu >= s.cpus.Room {
		return fmt.Errorf("CPU %d is not sampled: it came online after the start, beyond the %d CPUs that maps were sized for; restart the collector", cpu, s.cpus.Room)
	}
	hits := counted[cpu].Value[profilerCounterCOUNTER_HITS]
	if c := s.clocks[cpu]; c != nil {
		alive, err := c.look(now, hits)
		if alive || err != nil {
			return err
		}
		if err := s.dropCPU(cpu); err != nil {
			return err
		}
	}
	c, err := openClock(cpu, s.config.Period(), s.objs.SampleCpu, hits)
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
	return errors.Join(s.closeClock(cpu), s.sideband.drop(cpu))
}

func (s *Sampler) closeClock(cpu int) error {
	c := s.clocks[cpu]
	err := c.close()
	s.missedBefore += c.ticks.missed
	delete(s.clocks, cpu)
	return err
}

// closeClocks looks at their ticks a last time.
func (s *Sampler) closeClocks() error {
	if len(s.clocks) == 0 {
		return nil
	}
	var errs []error
	now := time.Now()
	counted, err := s.perCPU(s.objs.Counts)
	for cpu, c := range s.clocks {
		if err == nil {
			_, err := c.look(now, counted[cpu].Value[profilerCounterCOUNTER_HITS])
			errs = append(errs, err)
		}
		errs = append(errs, s.closeClock(cpu))
	}
	s.sumMissed()
	return errors.Join(append(errs, err)...)
}
