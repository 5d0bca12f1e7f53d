package pipeline

import "github.com/customlabels/otelcol-customlabels/internal/profile"

// What is counted has names: those of metrics and of log lines. Each stands behind its value
// here, and in metadata.yaml of the receiver.
//go:generate stringer -linecomment -output reasons_string.go -type DropReason,UserDropReason,FilterReason,LimitAction,Limit,UnwindResult,RuntimeResult,SymbolProblem,HangKind,LoadErrorReason,CollectionResult,SeriesLost,TypeConflictResult

// DropReason says why a sample was taken, or should have been, and lost.
type DropReason int

// The reasons to drop a sample. The last ones are of off-CPU profiles alone.
const (
	DropRingFull    DropReason = iota // ring_full
	DropUserShare                     // user_share
	DropInternal                      // internal
	DropMalformed                     // malformed
	DropPendingFull                   // pending_full
	DropRefused                       // refused
	DropNoMemory                      // no_memory
	DropTooLarge                      // too_large
	DropTableFull                     // table_full
	DropEvicted                       // evicted
	DropReturnLost                    // return_lost
	DropUnfinished                    // unfinished

	NumDropReasons = iota
)

// DropReasons returns the number of reasons that a stream can have, the first ones: those before
// the first one of off-CPU profiles.
func DropReasons(kind Kind) int {
	if kind == profile.KindOffCPU {
		return NumDropReasons
	}
	return int(DropTableFull)
}

// UserDropReason is a DropReason for which one user is to blame.
type UserDropReason int

// The reasons that a user is to blame for.
const (
	UserDropShare       UserDropReason = iota // user_share
	UserDropPendingFull                       // pending_full

	NumUserDropReasons = iota
)

// FilterReason says why a hit was left out on purpose.
type FilterReason int

// The reasons to filter a sample. The last ones are of off-CPU profiles alone.
const (
	FilterIdle           FilterReason = iota // idle
	FilterTarget                             // target
	FilterUnknownProcess                     // unknown_process
	FilterKernel                             // kernel
	FilterOwn                                // own
	FilterNotDrawn                           // not_drawn
	FilterBelowMinimum                       // below_minimum

	NumFilterReasons = iota
)

// FilterReasons returns the number of reasons that a stream can have, the first ones: those before
// the first one of off-CPU profiles.
func FilterReasons(kind Kind) int {
	if kind == profile.KindOffCPU {
		return NumFilterReasons
	}
	return int(FilterKernel)
}

// LimitAction is what was done for a limit of the whole pipeline.
type LimitAction int

// What is done.
const (
	LimitFilesDropped     LimitAction = iota // file_dropped
	LimitSymbolsDropped                      // symbols_dropped
	LimitBatchesEarly                        // batch_early
	LimitProcessesReduced                    // process_reduced
	LimitWorkDelayed                         // work_delayed

	NumLimitActions = iota
)

// Limit is one of the whole pipeline.
type Limit int

// The limits.
const (
	LimitMemory        Limit = iota // max_memory_bytes
	LimitBPFMaps                    // max_bpf_map_bytes
	LimitBackgroundCPU              // max_background_cpu

	NumLimits = iota
)

// UnwindResult is what became of the unwind rows of a file.
type UnwindResult int

// What becomes of them.
const (
	UnwindLoaded UnwindResult = iota // loaded
	UnwindFailed                     // failed
	UnwindNoRoom                     // no_room

	NumUnwindResults = iota
)

// RuntimeResult is what became of a stack, a function or a file of a language runtime.
type RuntimeResult int

// The results of language runtimes.
const (
	RuntimeStackWhole      RuntimeResult = iota // stack_whole
	RuntimeStackCut                             // stack_cut
	RuntimeStackNoThread                        // stack_no_thread
	RuntimeStackInvalid                         // stack_invalid
	RuntimeFunctionRead                         // function_read
	RuntimeFunctionGone                         // function_gone
	RuntimeFunctionNoRoom                       // function_no_room
	RuntimeFileUnsupported                      // file_unsupported
	RuntimeFileUnreadable                       // file_unreadable

	NumRuntimeResults = iota
)

// SymbolProblem is why functions may have no names.
type SymbolProblem int

// The problems.
const (
	SymbolFailed    SymbolProblem = iota // failed
	SymbolTruncated                      // truncated
	SymbolTimedOut                       // timed_out
	SymbolRefused                        // refused

	NumSymbolProblems = iota
)

// HangKind is what does not answer who reads it.
type HangKind int

// What hangs.
const (
	HangProcess HangKind = iota // process
	HangFile                    // file

	NumHangKinds = iota
)

// LoadErrorReason is why something of a process or file is missing.
type LoadErrorReason int

// What goes wrong with processes and files.
const (
	LoadErrorProcess      LoadErrorReason = iota // process_failed
	LoadErrorFile                                // file_failed
	LoadErrorNoPlace                             // no_place
	LoadErrorMappingsCut                         // mappings_cut
	LoadErrorNotPublished                        // not_published

	NumLoadErrorReasons = iota
)
