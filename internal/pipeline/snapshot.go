package pipeline

import (
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// Snapshot is what a pipeline has counted since its start, in samples where nothing else is
// said, and how large some things are. The counters move on while it is taken, so its maker
// reads hits last: every sample that the other counters know of is then a hit too.
type Snapshot struct {
	Hits     int64 // of the timers
	Emitted  int64
	Filtered [NumFilterReasons]int64
	Dropped  [NumDropReasons]int64

	Users       []uint32 // uids in the init user namespace, in the order of all that is by user
	UserDropped [NumUserDropReasons]ByUser
	LostLabels  ByUser // samples of all kinds that lack their labels because of max_user_entries
	LostStacks  ByUser // and their stacks

	OffCPU   OffCPUSnapshot
	Labels   LabelsSnapshot
	Metering MeteringSnapshot

	LabelReads           [labels.NumABIs][labels.NumOutcomes]int64 // reads
	UserStacks           [labels.NumOutcomes]int64
	Anomalies            [NumAnomalies]int64
	DroppedProcessEvents int64                   // events that found no room
	ProcessLoadErrors    int64                   // processes and executables of which something could not be read, kept or passed to BPF
	ContextReads         int64                   // of process contexts
	ContextErrors        int64                   // process contexts that could not be read, made no sense, or are not kept in whole
	UnwindFiles          [NumUnwindResults]int64 // files

	RingBufferUsedBytes  int64 // unread
	TrackedProcesses     int64
	LabelSourceProcesses int64 // processes with a label source
	ContextProcesses     int64 // processes with a process context
	UnwindBytes          int64 // of unwind rows
	UnwindTables         int64
	SymbolProblems       [NumSymbolProblems]int64
	SymbolBytes          int64 // of names of functions
	Hanging              [NumHangKinds]int64

	LimitUsed      [NumLimits]float64 // part of it
	LimitActions   [NumLimitActions]int64
	Memory         [budget.NumParts]int64 // bytes
	BPFMapBytes    int64
	Background     [budget.NumWork]float64 // CPU seconds
	BackgroundLeft [budget.NumWork]int64   // what waits to be done
}

// Pending hits are in the ring buffer or in a batch that was not handed over yet.
func (s *Snapshot) Pending() int64 {
	rest := s.Hits - s.Emitted
	for _, n := range s.Filtered {
		rest -= n
	}
	for _, n := range s.Dropped {
		rest -= n
	}
	return rest
}

// OffCPUSnapshot is what became of switches.
type OffCPUSnapshot struct {
	Enabled   bool
	Switches  int64
	Emitted   int64
	Filtered  [NumOffCPUFilterReasons]int64
	Dropped   [NumOffCPUDropReasons]int64
	RingBytes int64 // unread
	AwayBytes int64 // of records of threads that are away

	UserDropped [NumUserDropReasons]ByUser
}

// Pending switches are of threads that are away, in the ring buffer or in a batch
// that was not handed over yet.
func (s *OffCPUSnapshot) Pending() int64 {
	rest := s.Switches - s.Emitted
	for _, n := range s.Filtered {
		rest -= n
	}
	for _, n := range s.Dropped {
		rest -= n
	}
	return rest
}
