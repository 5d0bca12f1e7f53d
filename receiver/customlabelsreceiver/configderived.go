package customlabelsreceiver

import (
	"math/bits"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
)

// What follows from max_memory_bytes.
const (
	symbolShare       = 8        // of it for names of functions
	batchShare        = 8        // of it for one batch
	pendingBatchBytes = 64 << 20 // of it for each batch that waits
	minPendingBatches = 4
	maxPendingBatches = 64
	maxPartBytes      = 1 << 30
	bytesPerFrame     = 4 << 10 // of it for each frame of a user in a batch
	maxUserFrames     = 1 << 20
)

// What follows from max_bpf_map_bytes. The ring buffer of samples also goes by their rate, and
// unwind rows give way to what else a host needs: in the pipeline.
const (
	offCPURingShare = 32 // of it for the ring buffer of off-CPU profiles
	unwindShare     = 2  // of it for unwind rows at most
)

// What follows from max_user_label_sets.
const (
	setsPerKey    = 8
	valuesPerSet  = 2
	bytesPerSet   = 512
	entriesPerSet = 8 // a label set comes with some stacks and threads
	setsPerSeries = 4
)

// metricExpiry is for how many intervals of metrics the series of a process that has ended is emitted. The
// series that a user's processes share must outlast the time between two batches, which may be more.
const (
	metricExpiry       = 20
	metricExpiryReport = 2 // report intervals, and one of metrics
)

// derive sets what no key says, from the limits.
func (c *Config) derive(o *pipeline.Options) {
	o.Symbols.MaxBytes = min(c.MaxMemoryBytes/symbolShare, maxPartBytes)
	o.Batches.MaxBytes = min(c.MaxMemoryBytes/batchShare, maxPartBytes)
	o.Batches.MaxUserFrames = min(c.MaxMemoryBytes/bytesPerFrame, maxUserFrames)
	o.Batches.MaxPending = min(max(c.MaxMemoryBytes/pendingBatchBytes, minPendingBatches), maxPendingBatches)

	o.OffCPU.RingBytes = powerOfTwo(c.MaxBpfMapBytes / offCPURingShare)
	o.Unwind.MaxBytes = min(c.MaxBpfMapBytes/unwindShare, maxPartBytes)

	sets := c.MaxUserLabelSets
	o.Labels.Budgets = labels.Budgets{
		Keys: sets / setsPerKey, Values: valuesPerSet * sets, Sets: sets,
		Bytes: max(bytesPerSet*sets, labels.MinBudgetBytes),
	}
	// As many users have budgets of their own as the memory has room for.
	o.Labels.Budgets.Users = min(c.MaxMemoryBytes/o.Labels.Budgets.Bytes, labels.MaxBudgetUsers)
	o.Batches.MaxUserEntries = entriesPerSet * sets
	o.Metrics.MaxUserSeries = sets / setsPerSeries
	o.Metrics.Expiry = max(metricExpiry*c.Metrics.Interval, metricExpiryReport*c.ReportInterval+c.Metrics.Interval)
}

// powerOfTwo is the largest one that is no more than n.
func powerOfTwo(n int) int { return 1 << (bits.Len(uint(n)) - 1) }
