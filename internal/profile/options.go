package profile

import "time"

// Options say what the output has.
type Options struct {
	Period          time.Duration // CPU time between two samples: 1e9/Hz ns
	OffCPU          *OffCPU       // the samples are of off-CPU time; nil: of CPU time
	LabelPrefix     string        // of attribute keys of labels other than the thread context's
	PrometheusNames bool          // of labels and resources are such as Prometheus takes; see the package documentation
	ServiceAdded    bool          // what names the service of a process may be added behind, by a processor
	TraceAttributes bool          // trace_id, span_id and trace_sampled as attributes, besides the Link
	ThreadID        bool          // thread.id; part of the aggregation key
	ThreadName      bool          // thread.name; part of the aggregation key
	CPUAttribute    bool          // cpu.logical_number; part of the aggregation key
	// MaxEntries of a Builder whose label sets are told apart; see the package
	// documentation. 0: no bound.
	MaxEntries int
	// MaxFrames of a Builder that have locations of their own, counted once for each process and epoch, and
	// one that is large for several; see the package documentation. 0: no bound.
	MaxFrames    int
	ScopeName    string
	ScopeVersion string
}

//go:generate stringer -linecomment -output kind_string.go -type Kind

// Kind of profile.
type Kind uint8

// The kinds.
const (
	KindCPU    Kind = iota // cpu
	KindOffCPU             // off_cpu

	NumKinds = iota
)

// OffCPU says what samples of off-CPU time stand for.
type OffCPU struct {
	Threshold float64       // part of all switches that were looked at
	Minimum   time.Duration // shorter absences are left out
}

// Attribute keys of the output.
const (
	attrThreadID       = "thread.id"
	attrThreadName     = "thread.name"
	attrCPU            = "cpu.logical_number"
	attrTraceID        = "trace_id"
	attrSpanID         = "span_id"
	attrTraceSampled   = "trace_sampled"
	attrTruncated      = "custom_labels.truncated"
	attrOverflow       = "custom_labels.overflow"
	attrStackTruncated = "custom_labels.stack_truncated"
	attrEmptyKey       = "custom_labels.empty_key"
	attrThreadState    = "custom_labels.thread_state"

	attrOffCPUThreshold = "custom_labels.off_cpu.threshold"
	attrOffCPUMinimum   = "custom_labels.off_cpu.minimum_ns"

	attrFrameType      = "profile.frame.type"
	attrBuildIDGNU     = "process.executable.build_id.gnu"
	attrBuildIDGo      = "process.executable.build_id.go"
	attrBuildIDHTLHash = "process.executable.build_id.htlhash"
)

// fallbackPrefix is where a label goes whose name is one of ours.
const fallbackPrefix = "process.context.label."

// ours returns the sample attribute keys that no label can take.
func ours() []string {
	return []string{
		attrThreadID, attrThreadName, attrCPU, attrTraceID, attrSpanID, attrTraceSampled,
		attrTruncated, attrOverflow, attrStackTruncated, attrEmptyKey, attrThreadState,
	}
}
