//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Counters since the program was loaded, summed over all CPUs. After Stop:
// Hits = Submitted + all that were filtered or dropped.
type Counters struct {
	// Hits are runs of the sampling program.
	Hits uint64
	// Submitted records are in the ring buffer or were read from it.
	Submitted uint64

	// FilteredIdle: the idle task was interrupted, or left the CPU.
	FilteredIdle uint64
	// FilteredTarget: it was a thread of a process that Sampler.Filter was called for.
	FilteredTarget uint64
	// FilteredKernel: a task without user space left the CPU.
	FilteredKernel uint64
	// FilteredOwn: a thread of this process left the CPU.
	FilteredOwn uint64
	// FilteredNotDrawn by OffCPUConfig.Threshold.
	FilteredNotDrawn uint64

	// DroppedRingFull: there was no room in the ring buffer, or in its part that is not for
	// returns of threads.
	DroppedRingFull uint64
	// DroppedUserShare: the share of the thread's user was full.
	DroppedUserShare uint64
	// DroppedInternal: there was no scratch buffer.
	DroppedInternal uint64
	// DroppedTableFull: too many threads were off the CPU.
	DroppedTableFull uint64

	// What follows is not part of the sum.

	// ReturnsLost are returns of submitted samples that found no room.
	ReturnsLost uint64
	// EventsDropped are process events that found no room.
	EventsDropped uint64
	// EventsMissed are beginnings and ends of processes, or threads, and execs for which the kernel did not run the
	// program, since a task that had been preempted within it kept it on that CPU.
	EventsMissed uint64
	// ContextsRefused are announcements of process contexts beyond what a user, or a CPU, may have.
	ContextsRefused uint64
	// SourceReads are label sources looked at. Only they read a target's memory for labels.
	SourceReads uint64
	// Of samples of processes with a language runtime: all frames of the runtime are in the
	// stack; some are not; it does not know the thread; what is in memory makes no sense.
	RuntimeWhole, RuntimeCut, RuntimeNoThread, RuntimeInvalid uint64
}

// Counters reads the current values.
func (s *Sampler) Counters() (Counters, error) {
	c, err := s.readCounters(s.objs.Counts)
	if err != nil {
		return Counters{}, err
	}
	for _, program := range s.followers() {
		info, err := infoOf(program)
		if err != nil {
			return Counters{}, fmt.Errorf("read counters of %s: %w", program, err)
		}
		c.EventsMissed += info.misses
	}
	return c, nil
}

// programInfo is struct bpf_prog_info of include/uapi/linux/bpf.h as far as we read it.
type programInfo struct {
	_      uint32
	id     uint32
	_      [192]byte
	runs   uint64
	misses uint64 // recursion_misses; 0 before Linux 5.12
}

// infoOf does what ebpf.Program.Info does, for as little as possible: it is asked for again and again.
func infoOf(p *ebpf.Program) (info programInfo, err error) {
	attr := &struct { // of BPF_OBJ_GET_INFO_BY_FD
		fd, size uint32
		info     unsafe.Pointer
	}{uint32(p.FD()), uint32(unsafe.Sizeof(info)), unsafe.Pointer(&info)}
	return info, rawBPF(unix.BPF_OBJ_GET_INFO_BY_FD, unsafe.Pointer(attr), unsafe.Sizeof(*attr))
}

// rawBPF is for what does not block: see package wakeup. The library's calls are such of which the runtime is told.
func rawBPF(command uintptr, attr unsafe.Pointer, size uintptr) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_BPF, command, uintptr(attr), size); errno != 0 {
		return errno
	}
	return nil
}

func (s *Sampler) readCounters(counts *ebpf.Map) (Counters, error) {
	sum, err := s.sumCounters(counts)
	if err != nil {
		return Counters{}, err
	}
	return Counters{
		Hits:             sum.Value[profilerCounterCOUNTER_HITS],
		Submitted:        sum.Value[profilerCounterCOUNTER_SUBMITTED],
		FilteredIdle:     sum.Value[profilerCounterCOUNTER_FILTERED_IDLE],
		FilteredTarget:   sum.Value[profilerCounterCOUNTER_FILTERED_TARGET],
		FilteredKernel:   sum.Value[profilerCounterCOUNTER_FILTERED_KERNEL],
		FilteredOwn:      sum.Value[profilerCounterCOUNTER_FILTERED_OWN],
		FilteredNotDrawn: sum.Value[profilerCounterCOUNTER_FILTERED_NOT_DRAWN],
		DroppedRingFull:  sum.Value[profilerCounterCOUNTER_DROPPED_RING_FULL],
		DroppedUserShare: sum.Value[profilerCounterCOUNTER_DROPPED_USER_SHARE],
		DroppedInternal:  sum.Value[profilerCounterCOUNTER_DROPPED_INTERNAL],
		DroppedTableFull: sum.Value[profilerCounterCOUNTER_DROPPED_TABLE_FULL],
		ReturnsLost:      sum.Value[profilerCounterCOUNTER_RETURNS_LOST],
		EventsDropped:    sum.Value[profilerCounterCOUNTER_EVENTS_DROPPED],
		ContextsRefused:  sum.Value[profilerCounterCOUNTER_CONTEXTS_REFUSED],
		SourceReads:      sum.Value[profilerCounterCOUNTER_SOURCE_READS],
		RuntimeWhole:     sum.Value[profilerCounterCOUNTER_RUNTIME_WHOLE],
		RuntimeCut:       sum.Value[profilerCounterCOUNTER_RUNTIME_CUT],
		RuntimeNoThread:  sum.Value[profilerCounterCOUNTER_RUNTIME_NO_THREAD],
		RuntimeInvalid:   sum.Value[profilerCounterCOUNTER_RUNTIME_INVALID],
	}, nil
}

// cpuCounters returns the counters of an object by CPU.
func (s *Sampler) cpuCounters(counts *ebpf.Map) ([]profilerCounters, error) {
	possible, err := ebpf.PossibleCPU() // for as many the kernel writes
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	perCPU := make([]profilerCounters, possible)
	attr := &struct { // of BPF_MAP_LOOKUP_ELEM, union bpf_attr in include/uapi/linux/bpf.h
		fd, _      uint32
		key, value unsafe.Pointer
		flags      uint64
	}{fd: uint32(counts.FD()), key: unsafe.Pointer(new(uint32)), value: unsafe.Pointer(&perCPU[0])}
	if err := rawBPF(unix.BPF_MAP_LOOKUP_ELEM, unsafe.Pointer(attr), unsafe.Sizeof(*attr)); err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	return perCPU, nil
}

// sumCounters adds up the counters of an object over all CPUs.
func (s *Sampler) sumCounters(counts *ebpf.Map) (sum profilerCounters, err error) {
	perCPU, err := s.cpuCounters(counts)
	if err != nil {
		return sum, err
	}
	for i := range perCPU {
		for c, v := range perCPU[i].Value {
			sum.Value[c] += v
		}
	}
	return sum, nil
}
