//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// Counters since New, summed over all CPUs. After Stop:
// Hits = Submitted + FilteredIdle + FilteredTarget + DroppedRingFull + DroppedUserShare + DroppedInternal.
type Counters struct {
	// Hits are runs of the sampling program.
	Hits uint64
	// Submitted records are in the ring buffer or were read from it.
	Submitted uint64
	// FilteredIdle hits interrupted the idle task.
	FilteredIdle uint64
	// FilteredTarget hits interrupted a process that Filter was called for.
	FilteredTarget uint64
	// DroppedRingFull hits found no room in the ring buffer.
	DroppedRingFull uint64
	// DroppedInternal hits found no scratch buffer.
	DroppedInternal uint64
	// DroppedUserShare hits found no room in the share of their user.
	DroppedUserShare uint64
	// EventsDropped are process events that found no room; not part of the sum.
	EventsDropped uint64
	// SourceReads are label sources looked at; not part of the sum. Only they
	// read a target's memory for labels.
	SourceReads uint64
}

// Counters reads the current values.
func (s *Sampler) Counters() (Counters, error) {
	sum, err := s.sumCounters(s.objs.Counts)
	if err != nil {
		return Counters{}, err
	}
	return Counters{
		Hits:             sum.Value[profilerCounterCOUNTER_HITS],
		Submitted:        sum.Value[profilerCounterCOUNTER_SUBMITTED],
		FilteredIdle:     sum.Value[profilerCounterCOUNTER_FILTERED_IDLE],
		FilteredTarget:   sum.Value[profilerCounterCOUNTER_FILTERED_TARGET],
		DroppedRingFull:  sum.Value[profilerCounterCOUNTER_DROPPED_RING_FULL],
		DroppedInternal:  sum.Value[profilerCounterCOUNTER_DROPPED_INTERNAL],
		DroppedUserShare: sum.Value[profilerCounterCOUNTER_DROPPED_USER_SHARE],
		EventsDropped:    sum.Value[profilerCounterCOUNTER_EVENTS_DROPPED],
		SourceReads:      sum.Value[profilerCounterCOUNTER_SOURCE_READS],
	}, nil
}

// sumCounters adds up the counters of an object over all CPUs.
func (s *Sampler) sumCounters(counts *ebpf.Map) (sum profilerCounters, err error) {
	perCPU := make([]profilerCounters, s.possibleCPUs)
	if err := counts.Lookup(uint32(0), perCPU); err != nil {
		return sum, fmt.Errorf("read counters: %w", err)
	}
	for i := range perCPU {
		for c, v := range perCPU[i].Value {
			sum.Value[c] += v
		}
	}
	return sum, nil
}
