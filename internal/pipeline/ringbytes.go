package pipeline

import "github.com/customlabels/otelcol-customlabels/internal/bpf"

const (
	// secondBytes of a sample and CPU is what the ring buffer has room for where its size is
	// not given: a second of samples with stacks of 200 frames and some labels.
	secondBytes = 2 << 10
	// The bounds of that are these parts of LimitOptions.BPFMapBytes.
	lowRingShare  = 128
	highRingShare = 4
	// minRingBytes and maxRingBytes are what the sampler takes.
	minRingBytes = 64 << 10
	maxRingBytes = 1 << 30
	// leastRowShare is the part of it that unwind rows have on any host.
	leastRowShare = 16
	// restMapBytes of LimitOptions.BPFMapBytes is for what is no ring buffer and no unwind rows.
	restMapBytes = 8 << 20
)

// MapBytes is what options need of [LimitOptions].BPFMapBytes, however many CPUs there are.
type MapBytes struct {
	Ring       int // of samples; where RingOptions.Bytes is 0, the least that it can be
	OffCPURing int
	Unwind     int // rows
	Rest       int // all other maps
}

// Sum of all parts.
func (m MapBytes) Sum() int { return m.Ring + m.fixed() }

// fixed is what is not for the ring buffer of samples.
func (m MapBytes) fixed() int { return m.OffCPURing + m.Unwind + m.Rest }

// MapBytes returns what the options need; no default stands for what is 0.
func (o *Options) MapBytes() MapBytes {
	m := MapBytes{Ring: o.Ring.Bytes, Rest: restMapBytes}
	if m.Ring == 0 {
		m.Ring = minRingBytes
	}
	if o.OffCPU.Threshold != 0 {
		m.OffCPURing = o.OffCPU.RingBytes
	}
	if !o.Unwind.FramePointersOnly {
		m.Unwind = o.Unwind.MaxBytes
	}
	return m
}

// cpuBytes is what BPF maps take for CPUs.
func (o *Options) cpuBytes(on bpf.CPUs) int {
	n := on.Possible*bpf.PossibleCPUBytes + on.Room*bpf.RoomCPUBytes
	if o.OffCPU.Threshold > 0 {
		n *= 2
	}
	return n
}

// fit has unwind rows give way to what CPUs need: they get 3/4 of what that leaves at most, and
// leastRowShare in any case.
func (o *Options) fit(on bpf.CPUs) {
	m := o.MapBytes()
	room := o.Limits.BPFMapBytes - o.cpuBytes(on) - m.OffCPURing - m.Rest
	o.Unwind.MaxBytes = min(o.Unwind.MaxBytes, max(room/4*3, o.Limits.BPFMapBytes/leastRowShare))
}

// ringBytes returns the size of the ring buffer on a host: what is given,
// or what fits the rate of samples and LimitOptions.BPFMapBytes.
func (o *Options) ringBytes(on bpf.CPUs) int {
	if o.Ring.Bytes != 0 {
		return o.Ring.Bytes
	}
	maps := o.Limits.BPFMapBytes
	want := min(max(o.SamplesPerSecond*on.Online*secondBytes, maps/lowRingShare, minRingBytes), maps/highRingShare)
	room := max(maps-o.MapBytes().fixed()-o.cpuBytes(on), minRingBytes)
	n := maxRingBytes
	for n/2 >= want || n > room {
		n /= 2
	}
	return n
}
