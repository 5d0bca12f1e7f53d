package profile

import (
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Sample is one hit of the profiler, or one absence from the CPU. It belongs to the caller, who may reuse it
// and its slices; the Builder copies what it keeps.
type Sample struct {
	Process      uint64 // handle of the process, meaningful to the Resolver
	Epoch        uint32 // of what the process maps, meaningful to the Resolver
	TimeUnixNano uint64 // of an absence: when it ended
	OffCPUNs     int64  // of an absence: what it counts
	State        record.ThreadState
	TID          uint32
	Comm         []byte // of the thread; what follows a NUL is ignored
	CPU          uint32
	// Both leaf first; of user frames, those of a language runtime are two words
	// (record.RuntimeWord). The first element of each is the address of an
	// instruction, the others are addresses behind one, as return addresses are.
	KernelFrames, UserFrames []uint64
	Set                      *labels.Set // canonical; nil: no labels
	Link                     labels.Link
	Sampled                  Sampled // meaningful with a Link
	KernelStack, UserStack   record.Outcome
}

// Sampled is the W3C trace flag that says whether the trace of a Link may have
// been recorded.
type Sampled uint8

// What is known of the flag.
const (
	SampledUnknown Sampled = iota
	SampledNo
	SampledYes
)

// FrameKind tells the address spaces of frames apart.
type FrameKind uint8

// The kinds of frames.
const (
	Kernel FrameKind = iota // the same in every process
	User
	Runtime // of a language runtime, two words each
)

// Frame is what a Resolver knows of an address; the zero Frame is nothing.
type Frame struct {
	Mapping *Mapping
	// Lines are the functions that the address is in: the innermost that was inlined
	// first, what it was inlined into last. The slice is not kept.
	Lines []Line
	Type  string // profile.frame.type: "kernel", "native", "go", "cpython", "jvm", "v8js"; "": as "native"
}

// Line is a place in a function; one with neither Function nor File is nothing.
type Line struct {
	Function  string
	File      string
	Line      int64 // of the address or, but in the first Line, of the call; 0 if not known
	StartLine int64 // of the function; 0 if not known
}

// Mapping is a file mapped into memory. Mappings are told apart by value.
type Mapping struct {
	// Addresses in memory, Limit exclusive. Limit 0 means that the extent is
	// unknown; otherwise an address outside gets no mapping.
	Start, Limit   uint64
	FileOffset     uint64
	Filename       string
	BuildIDGNU     string // hex
	BuildIDGo      string
	BuildIDHTLHash string // hex
}

// contains reports whether the mapping may claim addr.
func (m *Mapping) contains(addr uint64) bool {
	return m.Limit == 0 || addr >= m.Start && addr < m.Limit
}
