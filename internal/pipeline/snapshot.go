package pipeline

import (
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// NumStreams is the number of kinds of profiles, each of which has a stream of its own.
const NumStreams = profile.NumKinds

// Kind of profile.
type Kind = profile.Kind

// Snapshot is what a pipeline has counted since its start, in samples where nothing else is
// said, and how large some things are. The counters move on while it is taken, so its maker
// reads hits last: every sample that the other counters know of is then a hit too.
type Snapshot struct {
	Streams [NumStreams]StreamSnapshot // by kind

	Users      []uint32 // uids in the init user namespace, in the order of all that is by user
	LostLabels ByUser   // samples of all kinds that lack their labels because of BatchOptions.MaxUserEntries
	LostStacks ByUser   // and their stacks
	LostFrames ByUser   // that lack some of their frames because of BatchOptions.MaxUserFrames

	Labels   LabelsSnapshot
	Metering MeteringSnapshot

	LabelReads           [record.NumABIs][record.NumOutcomes]int64 // reads
	UserStacks           [record.NumOutcomes]int64
	Anomalies            [labels.NumAnomalies]int64
	DroppedProcessEvents int64 // events that found no room
	DroppedAnnouncements int64 // of process contexts, beyond what a user, or a CPU, may make at once
	ProcessLoadErrors    [NumLoadErrorReasons]int64
	ContextReads         int64                   // of process contexts
	ContextErrors        int64                   // process contexts that could not be read, made no sense, or are not kept in whole; and what environments say of resources
	UnwindFiles          [NumUnwindResults]int64 // files

	TrackedProcesses     int64
	LabelSourceProcesses int64 // processes with a label source
	ContextProcesses     int64 // processes with a process context
	UnwindBytes          int64 // of unwind rows
	UnwindTables         int64
	RuntimeResults       [NumRuntimeResults]int64
	SymbolProblems       [NumSymbolProblems]int64
	Hanging              [NumHangKinds]int64

	LimitUsed      [NumLimits]float64 // part of it
	LimitActions   [NumLimitActions]int64
	Memory         [budget.NumParts]int64 // bytes
	BPFMapBytes    int64
	Background     [budget.NumWork]float64 // CPU seconds
	BackgroundLeft [budget.Names]int64     // what waits to be done: processes and rows
}

// CPU is the stream of CPU time.
func (s *Snapshot) CPU() *StreamSnapshot { return &s.Streams[profile.KindCPU] }

// OffCPU is the stream of time off the CPU.
func (s *Snapshot) OffCPU() *StreamSnapshot { return &s.Streams[profile.KindOffCPU] }

// StreamSnapshot is what became of the hits of one kind of profile: interrupts by the timers,
// or switches of tasks away from a CPU.
type StreamSnapshot struct {
	Enabled  bool
	Kind     Kind
	Hits     int64
	Emitted  int64
	Filtered [NumFilterReasons]int64
	Dropped  [NumDropReasons]int64

	UserDropped [NumUserDropReasons]ByUser
	RingBytes   int64 // unread
	Metered     int64 // samples in the metrics
}

// Pending hits are in the ring buffer, of threads that are off the CPU, or in a batch that was
// not handed over yet.
func (s *StreamSnapshot) Pending() int64 {
	rest := s.Hits - s.Emitted
	for _, n := range s.Filtered {
		rest -= n
	}
	for _, n := range s.Dropped {
		rest -= n
	}
	return rest
}
