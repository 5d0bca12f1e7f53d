package customlabelsreceiver

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/confmap"
)

// Config, its defaults and bounds are generated from metadata.yaml. This file checks what the
// generator has no word for.

// Values of error_mode: what an error at start does.
const (
	ErrorModePropagate = "propagate" // Start returns it, which stops the collector
	ErrorModeIgnore    = "ignore"    // it is logged and reported as status; the receiver stays idle
)

// Values of symbolize: where addresses become function names.
const (
	SymbolizeLocal = "local" // on this host, from the executables and what goes with them
	SymbolizeNone  = "none"  // not here: frames carry addresses and mappings carry build ids
)

// Values of unwind: how user stacks are walked.
const (
	UnwindRows          = "rows"           // by the unwind tables of the executables, else by frame pointer
	UnwindFramePointers = "frame_pointers" // only so
)

// Values of labels::names: how labels, and attributes of resources that processes publish, are named.
const (
	NamesAsPublished = "as_published" // as programs do
	NamesPrometheus  = "prometheus"   // such that Prometheus and Pyroscope take them, dots apart
)

// Values of labels::type_conflicts: what becomes of values of one key that are not of one type.
const (
	TypeConflictsStringify = "stringify" // from the first on, the key's values are text, bytes escaped
	TypeConflictsRefuse    = "refuse"    // labels of another type than the first are left out
)

// Values of format: how a label writes an id.
const (
	IDHex     = "hex"     // of the full length: 32 digits for a trace, 16 for a span
	IDDecimal = "decimal" // an unsigned number of 64 bits, in a trace id its lower half
)

// Unmarshal implements confmap.Unmarshaler. It refuses a fraction of a sample and keys without a value, which would be
// left out in silence, and says of bytes with a unit what to write in their place.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if rate, ok := conf.Get("samples_per_second").(float64); ok && rate != math.Trunc(rate) {
		return fmt.Errorf("samples_per_second must be a whole number, not %v", rate)
	}
	for _, key := range []string{"max_memory_bytes", "max_bpf_map_bytes", "max_request_bytes"} {
		if text, ok := conf.Get(key).(string); ok {
			return fmt.Errorf("%s must be a whole number of bytes, such as %d for 256 MiB, not %q", key, 256<<20, text)
		}
	}
	before := *c
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	return refuseEmpty("", conf.ToStringMap(), reflect.ValueOf(before), reflect.ValueOf(*c))
}

// Bounds of durations.
const (
	minReportInterval = 100 * time.Millisecond
	maxReportInterval = 5 * time.Minute
	minMetricInterval = time.Second
	maxMetricInterval = 10 * time.Minute
	maxOffCPUMinimum  = time.Minute
)

// Bounds of bytes, as in metadata.yaml. What is generated from there checks them, too, and tells
// them as 6.7108864e+07.
const (
	minMemoryBytes, maxMemoryBytes   = 64 << 20, 64 << 30
	minBPFMapBytes, maxBPFMapBytes   = 16 << 20, 8 << 30
	minRequestBytes, maxRequestBytes = 512 << 10, 1 << 30
)

// validateConfig checks what goes beyond bounds of one number or text, and tells bounds of bytes.
func validateConfig(c *Config) error {
	errs := []error{
		within("report_interval", c.ReportInterval, minReportInterval, maxReportInterval),
		within("max_memory_bytes", c.MaxMemoryBytes, minMemoryBytes, maxMemoryBytes),
		within("max_bpf_map_bytes", c.MaxBpfMapBytes, minBPFMapBytes, maxBPFMapBytes),
		within("max_request_bytes", c.MaxRequestBytes, minRequestBytes, maxRequestBytes),
		number("max_background_cpu", c.MaxBackgroundCPU),
		c.Targets.validate(),
		c.Labels.validatePrefix(),
		c.Labels.validateIDKeys(),
		c.Labels.validateRules(),
		c.Metrics.validate(&c.Labels),
	}
	if off := c.OffCPU.Get(); off != nil {
		errs = append(errs,
			number("off_cpu::threshold", off.Threshold),
			within("off_cpu::minimum", off.Minimum, 0, maxOffCPUMinimum))
	}
	return errors.Join(errs...)
}

func (c *Labels) validatePrefix() error {
	if !utf8.ValidString(c.Prefix) {
		return fmt.Errorf("labels::prefix must be valid UTF-8, not %q", c.Prefix)
	}
	return nil
}

func within[T int | int64 | time.Duration](key string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("%s must be between %v and %v, not %v", key, low, high, value)
	}
	return nil
}

// number refuses what is neither below nor above any bound.
func number(key string, value float64) error {
	if math.IsNaN(value) {
		return fmt.Errorf("%s must be a number, not %v", key, value)
	}
	return nil
}

func atMost(key string, n, most int, what string) error {
	if n > most {
		return fmt.Errorf("%s must have at most %d %s, not %d", key, most, what, n)
	}
	return nil
}
