package customlabelsreceiver

import (
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// dropReason says why a sample was taken and lost.
type dropReason int

const (
	dropRingFull    dropReason = iota // no room in the ring buffer
	dropUserShare                     // no room in the share that the user has of it
	dropInternal                      // no scratch memory in BPF
	dropMalformed                     // a record that could not be decoded
	dropPendingFull                   // too many or too large unsent batches
	dropRefused                       // the next consumer refused the batch for good
	dropNoMemory                      // max_memory_bytes
	dropTooLarge                      // an entry larger than max_request_bytes

	numDropReasons = iota
)

func (r dropReason) String() string {
	return [numDropReasons]string{"ring_full", "user_share", "internal", "malformed", "pending_full", "refused", "no_memory", "too_large"}[r]
}

// userDropReason is a dropReason, or offCPUDropReason, for which one user is to blame.
type userDropReason int

const (
	userDropShare       userDropReason = iota // ring_buffer_user_share
	userDropPendingFull                       // too many batches of this user before their time

	numUserDropReasons = iota
)

func (r userDropReason) String() string {
	return [numUserDropReasons]string{"user_share", "pending_full"}[r]
}

// filterReason says why a hit was left out on purpose.
type filterReason int

const (
	filterIdle           filterReason = iota // the idle task was interrupted
	filterTarget                             // the process is not selected by targets
	filterUnknownProcess                     // it could not be told whether it is, mostly as it had ended

	numFilterReasons = iota
)

func (r filterReason) String() string {
	return [numFilterReasons]string{"idle", "target", "unknown_process"}[r]
}

// anomaly is something cut, lost or odd in labels that were read.
type anomaly int

const (
	anomalyCappedValue       anomaly = iota // a label left out because a rule allows no more values of its key
	anomalyChangedKey                       // a thread context key that has changed its name, which is ignored since
	anomalyConflict                         // a label lost against a different one of another source
	anomalyDuplicateKey                     // a label lost against one of the same key in the same source
	anomalyHalfID                           // a thread context with one of the two ids zero
	anomalyMalformedID                      // a label that is to be a trace or span id, and is none
	anomalyNullValue                        // a label whose value pointer is NULL
	anomalyRenameConflict                   // a label that a rule has renamed onto another one, which stays
	anomalyRenamedKey                       // a key that is ours or not UTF-8, emitted under another one
	anomalyTruncatedKey                     // a key of which only a prefix was copied
	anomalyTruncatedSet                     // a label set of which anything at all was cut
	anomalyTruncatedValue                   // a value of which only a prefix was copied
	anomalyUnconfirmedSource                // a label set from a presumed source that was not confirmed
	anomalyUnknownKey                       // a thread context attribute without a known name

	numAnomalies = iota
)

func (a anomaly) String() string {
	return [numAnomalies]string{
		"capped_value", "changed_key", "conflict", "duplicate_key", "half_id", "malformed_id", "null_value",
		"rename_conflict", "renamed_key",
		"truncated_key", "truncated_set", "truncated_value", "unconfirmed_source", "unknown_key",
	}[a]
}

// limitAction is what was done for a limit of the whole receiver.
type limitAction int

const (
	limitFilesDropped     limitAction = iota // what was known of an executable that no process maps
	limitSymbolsDropped                      // names of the functions of a file or process
	limitBatchesEarly                        // a batch was handed over before it was due
	limitProcessesReduced                    // mappings and resource of a process were not kept
	limitWorkDelayed                         // work in the background was put off

	numLimitActions = iota
)

func (a limitAction) String() string {
	return [numLimitActions]string{"file_dropped", "symbols_dropped", "batch_early", "process_reduced", "work_delayed"}[a]
}

// limit is one of the whole receiver.
type limit int

const (
	limitMemory limit = iota
	limitBPFMaps
	limitBackgroundCPU

	numLimits = iota
)

func (l limit) String() string {
	return [numLimits]string{"max_memory_bytes", "max_bpf_map_bytes", "max_background_cpu"}[l]
}

// unwindResult is what became of the unwind rows of a file.
type unwindResult int

const (
	unwindLoaded unwindResult = iota
	unwindFailed              // could not be read or loaded
	unwindNoRoom              // max_unwind_bytes

	numUnwindResults = iota
)

func (r unwindResult) String() string {
	return [numUnwindResults]string{"loaded", "failed", "no_room"}[r]
}

// symbolProblem is why functions may have no names.
type symbolProblem int

const (
	symbolFailed    symbolProblem = iota // a file or perf map could not be read, or not in whole
	symbolTruncated                      // one has more functions than are kept
	symbolTimedOut                       // a lookup gave up waiting for one to be read
	symbolRefused                        // a lookup for which too many were being read

	numSymbolProblems = iota
)

func (p symbolProblem) String() string {
	return [numSymbolProblems]string{"failed", "truncated", "timed_out", "refused"}[p]
}

// hangKind is what does not answer who reads it.
type hangKind int

const (
	hangProcess hangKind = iota // a process: its memory, or a file that it maps
	hangFile                    // a file or perf map with names of functions

	numHangKinds = iota
)

func (k hangKind) String() string { return [numHangKinds]string{"process", "file"}[k] }

// offCPUDropReason says why a switch was recorded, or should have been, and lost.
type offCPUDropReason int

const (
	offCPURingFull    offCPUDropReason = iota // no room in the ring buffer when the thread left
	offCPUUserShare                           // no room then in the share that the user has of it
	offCPUTableFull                           // too many threads were away, for BPF
	offCPUInternal                            // no scratch memory in BPF
	offCPUMalformed                           // a record that could not be decoded
	offCPUEvicted                             // too many threads were away, for user space
	offCPUReturnLost                          // no room in the ring buffer when the thread returned
	offCPUUnfinished                          // the thread was still away at the end
	offCPUPendingFull                         // too many or too large unsent batches
	offCPURefused                             // the next consumer refused the batch for good
	offCPUNoMemory                            // max_memory_bytes
	offCPUTooLarge                            // an entry larger than max_request_bytes

	numOffCPUDropReasons = iota
)

func (r offCPUDropReason) String() string {
	return [numOffCPUDropReasons]string{
		"ring_full", "user_share", "table_full", "internal", "malformed", "evicted", "return_lost", "unfinished", "pending_full", "refused", "no_memory",
		"too_large",
	}[r]
}

// offCPUFilterReason says why a switch was left out on purpose.
type offCPUFilterReason int

const (
	offCPUIdle           offCPUFilterReason = iota // the idle task left
	offCPUKernel                                   // a task without user space
	offCPUOwn                                      // a thread of the collector
	offCPUNotDrawn                                 // off_cpu_threshold
	offCPUBelowMinimum                             // off_cpu_minimum
	offCPUTarget                                   // a process that targets do not select
	offCPUUnknownProcess                           // it had ended before it could be told whether they do

	numOffCPUFilterReasons = iota
)

func (r offCPUFilterReason) String() string {
	return [numOffCPUFilterReasons]string{"idle", "kernel", "own", "not_drawn", "below_minimum", "target", "unknown_process"}[r]
}

// offCPUSnapshot is what became of switches.
type offCPUSnapshot struct {
	enabled   bool
	switches  int64
	emitted   int64
	filtered  [numOffCPUFilterReasons]int64
	dropped   [numOffCPUDropReasons]int64
	ringBytes int64 // unread
	awayBytes int64 // of records of threads that are away

	userDropped [numUserDropReasons]byUser
}

// pending switches are of threads that are away, in the ring buffer or in a batch
// that was not handed over yet.
func (s *offCPUSnapshot) pending() int64 {
	rest := s.switches - s.emitted
	for _, n := range s.filtered {
		rest -= n
	}
	for _, n := range s.dropped {
		rest -= n
	}
	return rest
}

// snapshot is what a pipeline has counted since its start. The counters move on
// while it is taken, so its maker reads hits last: every sample that the other
// counters know of is then a hit too.
type snapshot struct {
	hits     int64
	emitted  int64
	filtered [numFilterReasons]int64
	dropped  [numDropReasons]int64

	users       *userSeries // for all that is by user; nil: nothing is
	userDropped [numUserDropReasons]byUser
	lostLabels  byUser // samples of all kinds that lack their labels because of max_user_entries
	lostStacks  byUser // and their stacks

	offCPU offCPUSnapshot
	labels labelsSnapshot

	metering meteringSnapshot

	labelReads           [labels.NumABIs][labels.NumOutcomes]int64
	userStacks           [labels.NumOutcomes]int64
	anomalies            [numAnomalies]int64
	droppedProcessEvents int64
	processLoadErrors    int64
	contextReads         int64
	contextErrors        int64
	unwindFiles          [numUnwindResults]int64

	ringBufferUsedBytes  int64
	trackedProcesses     int64
	labelSourceProcesses int64
	contextProcesses     int64
	unwindBytes          int64
	unwindTables         int64
	symbolProblems       [numSymbolProblems]int64
	symbolBytes          int64
	hanging              [numHangKinds]int64

	limitUsed      [numLimits]float64 // part of it
	limitActions   [numLimitActions]int64
	memory         [budget.NumParts]int64 // bytes
	bpfMapBytes    int64
	background     [budget.NumWork]float64 // CPU seconds
	backgroundLeft [budget.NumWork]int64   // what waits to be done
}

// pending hits are in the ring buffer or in a batch that was not handed over yet.
func (s *snapshot) pending() int64 {
	rest := s.hits - s.emitted
	for _, n := range s.filtered {
		rest -= n
	}
	for _, n := range s.dropped {
		rest -= n
	}
	return rest
}
