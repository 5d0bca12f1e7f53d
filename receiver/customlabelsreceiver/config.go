package customlabelsreceiver

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
)

// Bounds of the configuration. Those of labels and of the ring buffer are the
// limits of internal/bpf; configbounds_test.go holds them together.
const (
	minSamplesPerSecond = 1
	maxSamplesPerSecond = 10_000
	minReportInterval   = 100 * time.Millisecond
	maxReportInterval   = 5 * time.Minute
	minRingBufferBytes  = 64 << 10
	maxRingBufferBytes  = 1 << 30
	maxLabels           = 64
	maxLabelKeyBytes    = 256
	maxLabelValueBytes  = 1024
	maxPrefixBytes      = 256
	maxIDKeys           = 8
	maxVerifierLogLevel = 2
	maxPendingBatches   = 64
	minSymbolBytes      = 1 << 20
	maxSymbolBytes      = 1 << 30
	minBatchBytes       = 1 << 20
	maxBatchBytes       = 1 << 30
	minRequestBytes     = 512 << 10 // the largest resource has room
	maxRequestBytes     = 1 << 30
	minUserEntries      = 1
	maxUserEntries      = 1 << 20
	minUnwindBytes      = 1 << 20
	maxUnwindBytes      = 1 << 30
	minMemoryBytes      = 64 << 20
	maxMemoryBytes      = 1 << 36
	minBPFMapBytes      = 16 << 20
	maxBPFMapBytes      = 1 << 33
	minBackgroundCPU    = 0.01
	maxBackgroundCPU    = 64
	minOffCPUThreshold  = 1e-6 // or 0
	maxOffCPUMinimum    = time.Minute
	minUserShare        = 0.01
)

// ErrorMode says what an error at start does.
type ErrorMode string

// The error modes.
const (
	ErrorModePropagate ErrorMode = "propagate" // Start returns it, which stops the collector
	ErrorModeIgnore    ErrorMode = "ignore"    // it is logged and reported as status; the receiver stays idle
)

// Symbolize says where addresses become function names.
type Symbolize string

// The ways to symbolize.
const (
	SymbolizeLocal Symbolize = "local" // on this host, from the executables and what goes with them
	SymbolizeNone  Symbolize = "none"  // not here: frames carry addresses and mappings carry build ids
)

// Unwind says how user stacks are walked.
type Unwind string

// The ways to walk a user stack.
const (
	UnwindRows          Unwind = "rows"           // by the unwind tables of the executables, else by frame pointer
	UnwindFramePointers Unwind = "frame_pointers" // only so
)

// Config of the custom_labels receiver.
type Config struct {
	// SamplesPerSecond and CPU. The period between two samples is fixed.
	SamplesPerSecond int `mapstructure:"samples_per_second"`
	// ReportInterval is how often a batch of profiles is handed to the next consumer.
	ReportInterval time.Duration `mapstructure:"report_interval"`
	// RingBufferBytes is the size of the kernel buffer that samples wait in: a
	// power of two and a multiple of the page size; 0: by SamplesPerSecond and CPUs.
	RingBufferBytes int `mapstructure:"ring_buffer_bytes"`
	// RingBufferUserShare is the part of a kernel buffer that unread samples of one user
	// may fill, so that the others have room; 1: all of it.
	RingBufferUserShare float64 `mapstructure:"ring_buffer_user_share"`
	// OffCPUThreshold is the part of all switches from a thread that are looked at for
	// off-CPU profiles, drawn at random; 0: none.
	OffCPUThreshold float64 `mapstructure:"off_cpu_threshold"`
	// OffCPUMinimum leaves out threads that were off the CPU for less.
	OffCPUMinimum time.Duration `mapstructure:"off_cpu_minimum"`
	// OffCPURingBufferBytes is RingBufferBytes of off-CPU profiles, which have a kernel buffer of their own.
	OffCPURingBufferBytes int `mapstructure:"off_cpu_ring_buffer_bytes"`
	// Targets says which processes are sampled.
	Targets TargetsConfig `mapstructure:"targets"`
	// Labels says what is read of the labels that programs publish.
	Labels LabelsConfig `mapstructure:"labels"`
	// Metrics says what the metrics have, where the receiver is in a pipeline of metrics.
	Metrics MetricsConfig `mapstructure:"metrics"`
	// TraceAttributes also emits the trace link as sample attributes trace_id and span_id.
	TraceAttributes bool `mapstructure:"trace_attributes"`
	// ThreadAttributes emits thread.id and thread.name, and so keeps samples of different threads apart.
	ThreadAttributes bool `mapstructure:"thread_attributes"`
	// CPUAttribute emits cpu.logical_number, and so keeps samples of different CPUs apart.
	CPUAttribute bool `mapstructure:"cpu_attribute"`
	// CommandLine emits the resource attribute process.command_line, which may hold secrets.
	CommandLine bool `mapstructure:"command_line"`
	// ResourceFromEnvironment adds what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
	// of a process's environment say to its resource. A process context goes before.
	ResourceFromEnvironment bool `mapstructure:"resource_from_environment"`
	// Unwind says how user stacks are walked.
	Unwind Unwind `mapstructure:"unwind"`
	// MaxUnwindBytes of unwind rows, in kernel memory. Files that find no room
	// have their stacks walked by frame pointer.
	MaxUnwindBytes int `mapstructure:"max_unwind_bytes"`
	// Symbolize says where addresses become function names.
	Symbolize Symbolize `mapstructure:"symbolize"`
	// MaxSymbolBytes of names of functions that are kept in memory. Those of the
	// files and processes that were not sampled for the longest time give way.
	MaxSymbolBytes int `mapstructure:"max_symbol_bytes"`
	// ErrorMode says what an error at start does.
	ErrorMode ErrorMode `mapstructure:"error_mode"`
	// NoKernelVersionCheck tries kernels that report a version older than 6.1.
	NoKernelVersionCheck bool `mapstructure:"no_kernel_version_check"`
	// BPFVerifierLogLevel is how much the BPF verifier says in a load error, 0 to 2.
	BPFVerifierLogLevel int `mapstructure:"bpf_verifier_log_level"`
	// MaxPendingBatches that wait for the next consumer; a further one is dropped and counted.
	MaxPendingBatches int `mapstructure:"max_pending_batches"`
	// MaxBatchBytes is the estimated memory of one batch at which the user who has most
	// of it is handed over before the report interval has passed.
	MaxBatchBytes int `mapstructure:"max_batch_bytes"`
	// MaxRequestBytes of what is handed to the next consumer at once, as it is sent: receivers
	// refuse more than they are set to, by default 4 MiB over gRPC. Batches are split.
	MaxRequestBytes int `mapstructure:"max_request_bytes"`
	// MaxUserEntries of one user in a batch that have labels of their own. Samples beyond
	// lose their labels, and from twice as many on their stacks.
	MaxUserEntries int `mapstructure:"max_user_entries"`
	// BatchPerUser gives each user batches of its own.
	BatchPerUser bool `mapstructure:"batch_per_user"`

	// MaxMemoryBytes of all that the receiver holds in user space, as it estimates it. When
	// little is left, caches give way, then processes get less, in the end samples are dropped.
	MaxMemoryBytes int `mapstructure:"max_memory_bytes"`
	// MaxBPFMapBytes of kernel memory of all BPF maps. Those that grow with the processes
	// get what ring buffers and unwind rows leave.
	MaxBPFMapBytes int `mapstructure:"max_bpf_map_bytes"`
	// MaxBackgroundCPU is CPU seconds a second for what is found out about processes: their
	// executables, unwind rows and names of functions.
	MaxBackgroundCPU float64 `mapstructure:"max_background_cpu"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// LabelsConfig says what is read of the labels that programs publish.
type LabelsConfig struct {
	// Enabled reads labels at all.
	Enabled bool `mapstructure:"enabled"`
	// Prefix of the attribute keys of custom labels. The attributes of a thread
	// context come under their own names.
	Prefix string `mapstructure:"prefix"`
	// StrictFileNames reads custom labels only of libraries whose names their ABI
	// allows, and of executables; else the symbol is enough.
	StrictFileNames bool `mapstructure:"strict_file_names"`
	// TraceIDKeys and SpanIDKeys name custom labels that hold ids: a set with both
	// has them as its link instead of as labels. Of several the first that a set has counts.
	TraceIDKeys []IDKey `mapstructure:"trace_id_keys"`
	SpanIDKeys  []IDKey `mapstructure:"span_id_keys"`
	// Rules change or drop labels.
	Rules []LabelRule `mapstructure:"rules"`
	// HashSalt of the action hash of rules; empty: a random one at each start.
	HashSalt configopaque.String `mapstructure:"hash_salt"`
	// TypeConflicts says what becomes of values of one key that are not of one type.
	TypeConflicts TypeConflicts `mapstructure:"type_conflicts"`
	// PerContainer gives each container of a user keys and budgets of its own.
	PerContainer bool `mapstructure:"per_container"`
	// Budgets bound what the labels of each user may take.
	Budgets LabelBudgets `mapstructure:"budgets"`
	// MaxLabels of one label set that are copied.
	MaxLabels int `mapstructure:"max_labels"`
	// MaxKeyBytes of one key that are copied.
	MaxKeyBytes int `mapstructure:"max_key_bytes"`
	// MaxValueBytes of one value that are copied.
	MaxValueBytes int `mapstructure:"max_value_bytes"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// IDFormat is how a label writes an id.
type IDFormat string

// The formats of ids.
const (
	IDHex     IDFormat = "hex"     // of the full length: 32 digits for a trace, 16 for a span
	IDDecimal IDFormat = "decimal" // an unsigned number of 64 bits, in a trace id its lower half
)

// IDKey is the key of a label that holds an id.
type IDKey struct {
	Key    string   `mapstructure:"key"`
	Format IDFormat `mapstructure:"format"` // default: hex

	// prevent unkeyed literal initialization
	_ struct{}
}

func createDefaultConfig() component.Config {
	return &Config{
		// Not a divisor of common timer rates, so that sampling does not run in
		// lockstep with periodic work.
		SamplesPerSecond:      19,
		ReportInterval:        5 * time.Second,
		RingBufferUserShare:   0.5,
		OffCPUMinimum:         time.Millisecond,
		OffCPURingBufferBytes: 4 << 20,
		Labels: LabelsConfig{
			Enabled:       true,
			Prefix:        "process.context.label.",
			TypeConflicts: TypeConflictsStringify,
			Budgets:       defaultLabelBudgets(),
			MaxLabels:     maxLabels,
			MaxKeyBytes:   maxLabelKeyBytes,
			MaxValueBytes: maxLabelValueBytes,
		},
		Metrics:           defaultMetrics(),
		TraceAttributes:   true,
		ThreadAttributes:  true,
		Unwind:            UnwindRows,
		MaxUnwindBytes:    64 << 20,
		Symbolize:         SymbolizeLocal,
		MaxSymbolBytes:    32 << 20,
		ErrorMode:         ErrorModePropagate,
		MaxPendingBatches: 4,
		MaxBatchBytes:     32 << 20,
		MaxRequestBytes:   3584 << 10,
		MaxMemoryBytes:    256 << 20,
		MaxBPFMapBytes:    128 << 20,
		MaxBackgroundCPU:  1,
		MaxUserEntries:    65536,
	}
}

// Validate checks every key and names each one that is out of range.
func (c *Config) Validate() error {
	return errors.Join(
		within("samples_per_second", c.SamplesPerSecond, minSamplesPerSecond, maxSamplesPerSecond),
		within("report_interval", c.ReportInterval, minReportInterval, maxReportInterval),
		validateRingBufferBytes("ring_buffer_bytes", c.leastRingBytes()),
		within("ring_buffer_user_share", c.RingBufferUserShare, minUserShare, 1),
		c.validateOffCPUThreshold(),
		within("off_cpu_minimum", c.OffCPUMinimum, 0, maxOffCPUMinimum),
		validateRingBufferBytes("off_cpu_ring_buffer_bytes", c.OffCPURingBufferBytes),
		c.Targets.validate(),
		c.validatePrefix(),
		c.validateIDKeys(),
		c.Labels.validateRules(),
		oneOf("labels::type_conflicts", c.Labels.TypeConflicts, TypeConflictsStringify, TypeConflictsRefuse),
		c.Labels.Budgets.validate(),
		c.Metrics.validate(),
		within("labels::max_labels", c.Labels.MaxLabels, 1, maxLabels),
		within("labels::max_key_bytes", c.Labels.MaxKeyBytes, 1, maxLabelKeyBytes),
		within("labels::max_value_bytes", c.Labels.MaxValueBytes, 1, maxLabelValueBytes),
		oneOf("unwind", c.Unwind, UnwindRows, UnwindFramePointers),
		within("max_unwind_bytes", c.MaxUnwindBytes, minUnwindBytes, maxUnwindBytes),
		oneOf("symbolize", c.Symbolize, SymbolizeLocal, SymbolizeNone),
		within("max_symbol_bytes", c.MaxSymbolBytes, minSymbolBytes, maxSymbolBytes),
		oneOf("error_mode", c.ErrorMode, ErrorModePropagate, ErrorModeIgnore),
		within("bpf_verifier_log_level", c.BPFVerifierLogLevel, 0, maxVerifierLogLevel),
		within("max_pending_batches", c.MaxPendingBatches, 1, maxPendingBatches),
		within("max_user_entries", c.MaxUserEntries, minUserEntries, maxUserEntries),
		within("max_batch_bytes", c.MaxBatchBytes, minBatchBytes, maxBatchBytes),
		within("max_request_bytes", c.MaxRequestBytes, minRequestBytes, maxRequestBytes),
		c.validateLimits(),
	)
}

func (c *Config) validateOffCPUThreshold() error {
	if t := c.OffCPUThreshold; t != 0 && !(t >= minOffCPUThreshold && t <= 1) {
		return fmt.Errorf("off_cpu_threshold must be 0, or between %v and 1, not %v", minOffCPUThreshold, t)
	}
	return nil
}

func validateRingBufferBytes(key string, n int) error {
	page := os.Getpagesize()
	if n < minRingBufferBytes || n > maxRingBufferBytes || bits.OnesCount(uint(n)) != 1 || n%page != 0 {
		return fmt.Errorf("%s must be a power of two between %d and %d and a multiple of the page size %d, not %d",
			key, minRingBufferBytes, maxRingBufferBytes, page, n)
	}
	return nil
}

func (c *Config) validatePrefix() error {
	if len(c.Labels.Prefix) > maxPrefixBytes || !utf8.ValidString(c.Labels.Prefix) {
		return fmt.Errorf("labels::prefix must be valid UTF-8 of at most %d bytes, not %q",
			maxPrefixBytes, c.Labels.Prefix)
	}
	return nil
}

func (c *Config) validateIDKeys() error {
	trace, span := c.Labels.TraceIDKeys, c.Labels.SpanIDKeys
	var errs []error
	if (len(trace) == 0) != (len(span) == 0) {
		errs = append(errs, errors.New("labels::trace_id_keys and labels::span_id_keys must be set together: a link has both ids"))
	}
	for _, list := range []struct {
		name string
		keys []IDKey
	}{{"labels::trace_id_keys", trace}, {"labels::span_id_keys", span}} {
		if len(list.keys) > maxIDKeys {
			errs = append(errs, fmt.Errorf("%s must have at most %d keys, not %d", list.name, maxIDKeys, len(list.keys)))
		}
		for _, k := range list.keys {
			if k.Key == "" || len(k.Key) > maxLabelKeyBytes {
				errs = append(errs, fmt.Errorf("%s: key must have 1 to %d bytes, not %d", list.name, maxLabelKeyBytes, len(k.Key)))
			}
			if k.Format != "" {
				errs = append(errs, oneOf(list.name+": format", k.Format, IDHex, IDDecimal))
			}
		}
	}
	return errors.Join(errs...)
}

func within[T int | int64 | float64 | time.Duration](key string, value, low, high T) error {
	if !(value >= low && value <= high) { // a float64 may be neither
		return fmt.Errorf("%s must be between %v and %v, not %v", key, low, high, value)
	}
	return nil
}

func oneOf[T ~string](key string, value, a, b T) error {
	if value != a && value != b {
		return fmt.Errorf("%s must be %q or %q, not %q", key, a, b, value)
	}
	return nil
}
