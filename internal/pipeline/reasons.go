package pipeline

// DropReason says why a sample was taken and lost.
type DropReason int

// The reasons to drop a sample.
const (
	DropRingFull    DropReason = iota // no room in the ring buffer
	DropUserShare                     // no room in the share that the user has of it
	DropInternal                      // no scratch memory in BPF
	DropMalformed                     // a record that could not be decoded
	DropPendingFull                   // too many or too large unsent batches
	DropRefused                       // the next consumer refused the batch for good
	DropNoMemory                      // max_memory_bytes
	DropTooLarge                      // an entry larger than max_request_bytes

	NumDropReasons = iota
)

func (r DropReason) String() string {
	return [NumDropReasons]string{"ring_full", "user_share", "internal", "malformed", "pending_full", "refused", "no_memory", "too_large"}[r]
}

// UserDropReason is a DropReason, or OffCPUDropReason, for which one user is to blame.
type UserDropReason int

// The reasons that a user is to blame for.
const (
	UserDropShare       UserDropReason = iota // ring_buffer_user_share
	UserDropPendingFull                       // too many batches of this user before their time

	NumUserDropReasons = iota
)

func (r UserDropReason) String() string {
	return [NumUserDropReasons]string{"user_share", "pending_full"}[r]
}

// FilterReason says why a hit was left out on purpose.
type FilterReason int

// The reasons to filter a sample.
const (
	FilterIdle           FilterReason = iota // the idle task was interrupted
	FilterTarget                             // the process is not selected by targets
	FilterUnknownProcess                     // it could not be told whether it is, mostly as it had ended

	NumFilterReasons = iota
)

func (r FilterReason) String() string {
	return [NumFilterReasons]string{"idle", "target", "unknown_process"}[r]
}

// Anomaly is something cut, lost or odd in labels that were read.
type Anomaly int

// The anomalies.
const (
	AnomalyCappedValue       Anomaly = iota // a label left out because a rule allows no more values of its key
	AnomalyChangedKey                       // a thread context key that has changed its name, which is ignored since
	AnomalyConflict                         // a label lost against a different one of another source
	AnomalyDuplicateKey                     // a label lost against one of the same key in the same source
	AnomalyHalfID                           // a thread context with one of the two ids zero
	AnomalyMalformedID                      // a label that is to be a trace or span id, and is none
	AnomalyNullValue                        // a label whose value pointer is NULL
	AnomalyRenameConflict                   // a label that a rule has renamed onto another one, which stays
	AnomalyRenamedKey                       // a key that is ours or not UTF-8, emitted under another one
	AnomalyTruncatedKey                     // a key of which only a prefix was copied
	AnomalyTruncatedSet                     // a label set of which anything at all was cut
	AnomalyTruncatedValue                   // a value of which only a prefix was copied
	AnomalyUnconfirmedSource                // a label set from a presumed source that was not confirmed
	AnomalyUnknownKey                       // a thread context attribute without a known name

	NumAnomalies = iota
)

func (a Anomaly) String() string {
	return [NumAnomalies]string{
		"capped_value", "changed_key", "conflict", "duplicate_key", "half_id", "malformed_id", "null_value",
		"rename_conflict", "renamed_key",
		"truncated_key", "truncated_set", "truncated_value", "unconfirmed_source", "unknown_key",
	}[a]
}

// LimitAction is what was done for a limit of the whole pipeline.
type LimitAction int

// What is done.
const (
	LimitFilesDropped     LimitAction = iota // what was known of an executable that no process maps
	LimitSymbolsDropped                      // names of the functions of a file or process
	LimitBatchesEarly                        // a batch was handed over before it was due
	LimitProcessesReduced                    // mappings and resource of a process were not kept
	LimitWorkDelayed                         // work in the background was put off

	NumLimitActions = iota
)

func (a LimitAction) String() string {
	return [NumLimitActions]string{"file_dropped", "symbols_dropped", "batch_early", "process_reduced", "work_delayed"}[a]
}

// Limit is one of the whole pipeline.
type Limit int

// The limits.
const (
	LimitMemory Limit = iota
	LimitBPFMaps
	LimitBackgroundCPU

	NumLimits = iota
)

func (l Limit) String() string {
	return [NumLimits]string{"max_memory_bytes", "max_bpf_map_bytes", "max_background_cpu"}[l]
}

// UnwindResult is what became of the unwind rows of a file.
type UnwindResult int

// What becomes of them.
const (
	UnwindLoaded UnwindResult = iota
	UnwindFailed              // could not be read or loaded
	UnwindNoRoom              // max_unwind_bytes

	NumUnwindResults = iota
)

func (r UnwindResult) String() string {
	return [NumUnwindResults]string{"loaded", "failed", "no_room"}[r]
}

// SymbolProblem is why functions may have no names.
type SymbolProblem int

// The problems.
const (
	SymbolFailed    SymbolProblem = iota // a file or perf map could not be read, or not in whole
	SymbolTruncated                      // one has more functions than are kept
	SymbolTimedOut                       // a lookup gave up waiting for one to be read
	SymbolRefused                        // a lookup for which too many were being read

	NumSymbolProblems = iota
)

func (p SymbolProblem) String() string {
	return [NumSymbolProblems]string{"failed", "truncated", "timed_out", "refused"}[p]
}

// HangKind is what does not answer who reads it.
type HangKind int

// What hangs.
const (
	HangProcess HangKind = iota // a process: its memory, or a file that it maps
	HangFile                    // a file or perf map with names of functions

	NumHangKinds = iota
)

func (k HangKind) String() string { return [NumHangKinds]string{"process", "file"}[k] }

// OffCPUDropReason says why a switch was recorded, or should have been, and lost.
type OffCPUDropReason int

// The reasons to drop a switch.
const (
	OffCPURingFull    OffCPUDropReason = iota // no room in the ring buffer when the thread left
	OffCPUUserShare                           // no room then in the share that the user has of it
	OffCPUTableFull                           // too many threads were away, for BPF
	OffCPUInternal                            // no scratch memory in BPF
	OffCPUMalformed                           // a record that could not be decoded
	OffCPUEvicted                             // too many threads were away, for user space
	OffCPUReturnLost                          // no room in the ring buffer when the thread returned
	OffCPUUnfinished                          // the thread was still away at the end
	OffCPUPendingFull                         // too many or too large unsent batches
	OffCPURefused                             // the next consumer refused the batch for good
	OffCPUNoMemory                            // max_memory_bytes
	OffCPUTooLarge                            // an entry larger than max_request_bytes

	NumOffCPUDropReasons = iota
)

func (r OffCPUDropReason) String() string {
	return [NumOffCPUDropReasons]string{
		"ring_full", "user_share", "table_full", "internal", "malformed", "evicted", "return_lost", "unfinished", "pending_full", "refused", "no_memory",
		"too_large",
	}[r]
}

// OffCPUFilterReason says why a switch was left out on purpose.
type OffCPUFilterReason int

// The reasons to filter a switch.
const (
	OffCPUIdle           OffCPUFilterReason = iota // the idle task left
	OffCPUKernel                                   // a task without user space
	OffCPUOwn                                      // a thread of the collector
	OffCPUNotDrawn                                 // off_cpu_threshold
	OffCPUBelowMinimum                             // off_cpu_minimum
	OffCPUTarget                                   // a process that targets do not select
	OffCPUUnknownProcess                           // it had ended before it could be told whether they do

	NumOffCPUFilterReasons = iota
)

func (r OffCPUFilterReason) String() string {
	return [NumOffCPUFilterReasons]string{"idle", "kernel", "own", "not_drawn", "below_minimum", "target", "unknown_process"}[r]
}
