//go:build linux && (amd64 || arm64)

package pipeline

import "github.com/customlabels/otelcol-customlabels/internal/bpf"

const (
	// secondBytes of a sample and CPU is what the ring buffer has room for where its size is
	// not given: a second of samples with stacks of 200 frames and some labels.
	secondBytes = 2 << 10
	// The bounds of that are these parts of LimitOptions.BPFMapBytes.
	lowRingShare  = 128
	highRingShare = 4
	// leastRowShare is the part of it that unwind rows have on any host.
	leastRowShare = 16
	// restMapBytes of LimitOptions.BPFMapBytes is for what is no ring buffer and no unwind rows.
	restMapBytes = 8 << 20
)

// mapBytes is what options need of [LimitOptions].BPFMapBytes, however many CPUs there are,
// beside the ring buffer of samples.
type mapBytes struct {
	offCPURing int
	unwind     int // rows
}

// sum is of all of that, with restMapBytes.
func (m mapBytes) sum() int { return m.offCPURing + m.unwind + restMapBytes }

// mapBytes returns what the options need; no default stands for what is 0.
func (o *Options) mapBytes() (m mapBytes) {
	if o.OffCPU.Threshold != 0 {
		m.offCPURing = o.OffCPU.RingBytes
	}
	if !o.Unwind.FramePointersOnly {
		m.unwind = o.Unwind.MaxBytes
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
	room := o.Limits.BPFMapBytes - o.cpuBytes(on) - o.mapBytes().offCPURing - restMapBytes
	o.Unwind.MaxBytes = min(o.Unwind.MaxBytes, max(room/4*3, o.Limits.BPFMapBytes/leastRowShare))
}

// ringBytes returns the size of the ring buffer on a host: what is given,
// or what fits the rate of samples and LimitOptions.BPFMapBytes.
func (o *Options) ringBytes(on bpf.CPUs) int {
	if o.Ring.Bytes != 0 {
		return o.Ring.Bytes
	}
	maps := o.Limits.BPFMapBytes
	want := min(max(o.SamplesPerSecond*on.Online*secondBytes, maps/lowRingShare, bpf.MinRingBufferBytes), maps/highRingShare)
	room := max(maps-o.mapBytes().sum()-o.cpuBytes(on), bpf.MinRingBufferBytes)
	n := bpf.MaxRingBufferBytes
	for n/2 >= want || n > room {
		n /= 2
	}
	return n
}
