package bpf

import "github.com/customlabels/otelcol-customlabels/internal/record"

// maxSampleBytes is the length of the longest sample.
const maxSampleBytes = record.SampleHeaderBytes + record.MaxLabelBytes + 8*(record.MaxKernelFrames+record.MaxUserFrames)

// The most that maps of a fixed size take for each CPU, besides what they take in any case:
// those of the sampler, and once more those of OffCPU.
const (
	PossibleCPUBytes = 16 << 10 // for each of CPUs.Possible
	RoomCPUBytes     = 80 << 10 // for each of CPUs.Room, besides
)

// CPUDescriptors are open for each online CPU while a sampler runs: two of its clock, one of its side band.
const CPUDescriptors = 3

// CPUs are those of a host.
type CPUs struct {
	Possible int // that it may have as long as it runs, by the kernel
	Online   int // that it has now
	// Room is up to which number, this one left out, the programs have scratch memory, which takes
	// tens of KiB for each: virtual hosts may have many times the CPUs that they have. So there is
	// room for twice as many as are present.
	Room int
}
