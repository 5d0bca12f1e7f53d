package customlabelsreceiver

import "github.com/customlabels/otelcol-customlabels/internal/labels"

// dropReason says why a sample was taken and lost.
type dropReason int

const (
	dropRingFull    dropReason = iota // no room in the ring buffer
	dropInternal                      // no scratch memory in BPF
	dropMalformed                     // a record that could not be decoded
	dropPendingFull                   // too many or too large unsent batches
	dropRefused                       // the next consumer refused the batch for good

	numDropReasons = iota
)

func (r dropReason) String() string {
	return [numDropReasons]string{"ring_full", "internal", "malformed", "pending_full", "refused"}[r]
}

// anomaly is something cut, lost or odd in labels that were read.
type anomaly int

const (
	anomalyChangedKey     anomaly = iota // a thread context key that has changed its name, which is ignored since
	anomalyConflict                      // a label lost against a different one of another source
	anomalyDuplicateKey                  // a label lost against one of the same key in the same source
	anomalyHalfID                        // a thread context with one of the two ids zero
	anomalyMalformedID                   // a label that is to be a trace or span id, and is none
	anomalyNullValue                     // a label whose value pointer is NULL
	anomalyRenamedKey                    // a key that is ours or not UTF-8, emitted under another one
	anomalyTruncatedKey                  // a key of which only a prefix was copied
	anomalyTruncatedSet                  // a label set of which anything at all was cut
	anomalyTruncatedValue                // a value of which only a prefix was copied
	anomalyUnknownKey                    // a thread context attribute without a known name

	numAnomalies = iota
)

func (a anomaly) String() string {
	return [numAnomalies]string{
		"changed_key", "conflict", "duplicate_key", "half_id", "malformed_id", "null_value", "renamed_key",
		"truncated_key", "truncated_set", "truncated_value", "unknown_key",
	}[a]
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

// snapshot is what a pipeline has counted since its start. The counters move on
// while it is taken, so its maker reads hits last: every sample that the other
// counters know of is then a hit too.
type snapshot struct {
	hits         int64
	emitted      int64
	filteredIdle int64
	dropped      [numDropReasons]int64

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
}

// pending hits are in the ring buffer or in a batch that was not handed over yet.
func (s *snapshot) pending() int64 {
	rest := s.hits - s.emitted - s.filteredIdle
	for _, n := range s.dropped {
		rest -= n
	}
	return rest
}
