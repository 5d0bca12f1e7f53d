package cputime

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// Names of the metrics, and of the attributes that are ours.
const (
	MetricCPUTime    = "custom_labels.cpu.time"
	MetricOffCPUTime = "custom_labels.off_cpu.time"

	AttrThreadState = "custom_labels.thread_state"
	AttrTruncated   = "custom_labels.truncated"
	AttrOverflow    = "custom_labels.overflow"
	AttrUser        = "process.real_user.id" // of the resource
)

// ReservedPrefix is how no label key may begin: attributes of ours do.
const ReservedPrefix = "custom_labels."

// Options of Sums.
type Options struct {
	// LabelKeys that series are told apart by, different ones.
	LabelKeys []string
	// Period is what a sample of CPU time counts.
	Period time.Duration
	// MaxSeries and MaxBytes of a user, see the package documentation; MaxUsers that have their own.
	MaxSeries, MaxBytes, MaxUsers int
	// Expiry is how long after its last sample the series of a process that has ended stays, and so does one
	// that a user's processes share: it must be longer than the time between two batches.
	Expiry time.Duration
	// Excess returns by how many bytes the Sums should shrink, if so many are of quiet series: memory is short; 0: it is
	// not. nil: it never is.
	Excess func() int
	// MaxRequestBytes of one pmetric.Metrics, as it is sent; what one point and its resource
	// take must be a small part of it.
	MaxRequestBytes int
	ScopeName       string
	ScopeVersion    string
}

// Resolver tells what is known of processes; a profile.Resolver is one.
type Resolver interface {
	// Wanted tells whether so many samples of a process count. It may be asked several times.
	Wanted(process uint64, samples int) bool
	// Resource fills the resource attributes of a process, with valid UTF-8.
	Resource(process uint64, attrs pcommon.Map)
}

// Batch says what is added.
type Batch struct {
	Kind profile.Kind // CPU time, or off-CPU time by the state of the thread
	User uint32       // whose samples they are
	// Sampled from StartUnixNano until EndUnixNano.
	StartUnixNano, EndUnixNano uint64
	// Tight lets no new series begin but those for overflow: memory is short.
	Tight bool
}

// Result is what became of samples.
type Result struct {
	Counted    int // in one series each; the rest is not wanted
	LostLabels int // of them, in the overflow series of their process
	LostOwner  int // of them, in the overflow series of their user
	Bytes      int // by how much the Sums have grown
}
