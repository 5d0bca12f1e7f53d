package customlabelsreceiver

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

// load reads the section of testdata/config.yaml over the defaults.
func load(t *testing.T, section string) (*Config, error) {
	t.Helper()
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	require.True(t, all.IsSet(section), "no section %q", section)
	conf, err := all.Sub(section)
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	return cfg, conf.Unmarshal(cfg)
}

func TestConfigValid(t *testing.T) {
	lowest := createDefaultConfig().(*Config)
	lowest.SamplesPerSecond = 1
	lowest.ReportInterval = 100 * time.Millisecond
	lowest.RingBufferBytes = 64 << 10
	lowest.RingBufferUserShare = 0.01
	lowest.OffCPUThreshold, lowest.OffCPUMinimum, lowest.OffCPURingBufferBytes = 1e-6, 0, 64<<10
	lowest.Labels.MaxLabels, lowest.Labels.MaxKeyBytes, lowest.Labels.MaxValueBytes = 1, 1, 1
	lowest.Metrics = MetricsConfig{LabelKeys: []string{"t"}, Interval: time.Second, MaxUserSeries: 1, Expiry: time.Second}
	lowest.MaxPendingBatches = 1
	lowest.MaxSymbolBytes, lowest.MaxBatchBytes, lowest.MaxUnwindBytes = 16<<20, 1<<20, 4<<20
	lowest.MaxMemoryBytes, lowest.MaxBPFMapBytes, lowest.MaxBackgroundCPU = 64<<20, 16<<20, 0.01
	lowest.MaxUserEntries, lowest.MaxRequestBytes = 1, 512<<10

	highest := createDefaultConfig().(*Config)
	highest.SamplesPerSecond = 10_000
	highest.ReportInterval = 5 * time.Minute
	highest.RingBufferBytes = 1 << 30
	highest.RingBufferUserShare = 1
	highest.OffCPUThreshold, highest.OffCPUMinimum, highest.OffCPURingBufferBytes = 1, time.Minute, 1<<30
	highest.MaxBatchBytes = 1 << 30
	highest.MaxMemoryBytes, highest.MaxBPFMapBytes, highest.MaxBackgroundCPU = 1<<36, 1<<33, 64
	highest.MaxUserEntries, highest.MaxRequestBytes = 1<<20, 1<<30

	for section, want := range map[string]*Config{
		"custom_labels": {
			SamplesPerSecond:      19,
			ReportInterval:        5 * time.Second,
			RingBufferUserShare:   0.5,
			OffCPUMinimum:         time.Millisecond,
			OffCPURingBufferBytes: 4 << 20,
			Labels: LabelsConfig{
				Enabled: true, Prefix: "process.context.label.", MaxLabels: 64, MaxKeyBytes: 256, MaxValueBytes: 1024,
				TypeConflicts: TypeConflictsStringify,
				Budgets:       LabelBudgets{Users: 64, Keys: 1024, Values: 16384, Sets: 8192, Bytes: 4 << 20},
			},
			Metrics:           MetricsConfig{Interval: 15 * time.Second, MaxUserSeries: 2048, Expiry: 5 * time.Minute},
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
		},
		"custom_labels/everything": {
			SamplesPerSecond:      97,
			ReportInterval:        time.Second,
			RingBufferBytes:       1 << 20,
			RingBufferUserShare:   0.25,
			OffCPUThreshold:       0.25,
			OffCPUMinimum:         5 * time.Microsecond,
			OffCPURingBufferBytes: 2 << 20,
			Labels: LabelsConfig{
				StrictFileNames: true,
				TraceIDKeys:     []IDKey{{Key: "trace"}, {Key: "root-span-id", Format: IDDecimal}},
				SpanIDKeys:      []IDKey{{Key: "span", Format: IDHex}},
				Rules: []LabelRule{
					{Name: "secrets", Key: "secret.*", Source: "v1", Executable: "/usr/bin/**", UID: []int64{0, 1000}, Action: "drop"},
					{Key: "user?", Action: "rename", To: "user"},
					{Action: "cap_distinct_values", Limit: 100},
				},
				HashSalt:      "pepper",
				TypeConflicts: TypeConflictsRefuse,
				PerContainer:  true,
				Budgets:       LabelBudgets{Users: 1, Keys: 2, Values: 3, Sets: 4, Bytes: 64 << 10},
				MaxLabels:     10, MaxKeyBytes: 64, MaxValueBytes: 128,
			},
			Metrics:      MetricsConfig{LabelKeys: []string{"tenant", "http.route"}, Interval: time.Minute, MaxUserSeries: 10, Expiry: time.Hour},
			CPUAttribute: true,
			CommandLine:  true,

			ResourceFromEnvironment: true,
			Unwind:                  UnwindFramePointers,
			MaxUnwindBytes:          32 << 20,
			Symbolize:               SymbolizeNone,
			MaxSymbolBytes:          64 << 20,
			ErrorMode:               ErrorModeIgnore,
			NoKernelVersionCheck:    true,
			BPFVerifierLogLevel:     2,
			MaxPendingBatches:       64,
			MaxBatchBytes:           1 << 20,
			MaxRequestBytes:         16 << 20,
			MaxMemoryBytes:          128 << 20,
			MaxBPFMapBytes:          64 << 20,
			MaxBackgroundCPU:        0.25,
			MaxUserEntries:          100,
			BatchPerUser:            true,
		},
		"custom_labels/lowest":  lowest,
		"custom_labels/highest": highest,
	} {
		t.Run(section, func(t *testing.T) {
			cfg, err := load(t, section)
			require.NoError(t, err)
			require.Equal(t, want, cfg)
			require.NoError(t, confmap.Validate(cfg))
		})
	}
}

// Every message names the key and what is allowed.
func TestConfigInvalid(t *testing.T) {
	for section, wants := range map[string][]string{
		"max_memory_low":              {"max_memory_bytes must be between 67108864 and 68719476736, not 1048576"},
		"max_memory_parts":            {"max_memory_bytes 67108864 must be at least max_symbol_bytes + 4 * max_batch_bytes = 167772160: raise it, or lower max_batch_bytes (33554432) or max_symbol_bytes (33554432)"},
		"max_bpf_map_high":            {"max_bpf_map_bytes must be between 16777216 and 8589934592, not 8589934593"},
		"max_bpf_map_parts":           {"max_bpf_map_bytes 134217728 must be at least 343932928, for ring buffers 268435456, max_unwind_bytes 67108864 and the rest 8388608: raise it, or lower ring_buffer_bytes or max_unwind_bytes"},
		"max_background_cpu_low":      {"max_background_cpu must be between 0.01 and 64, not 0"},
		"max_background_cpu_nan":      {"max_background_cpu must be between 0.01 and 64, not NaN"},
		"samples_per_second_low":      {"samples_per_second must be between 1 and 10000, not 0"},
		"samples_per_second_high":     {"samples_per_second must be between 1 and 10000, not 10001"},
		"report_interval_low":         {"report_interval must be between 100ms and 5m0s, not 99ms"},
		"report_interval_high":        {"report_interval must be between 100ms and 5m0s, not 5m1s"},
		"ring_buffer_bytes_low":       {"ring_buffer_bytes must be a power of two between 65536 and 1073741824", "not 32768"},
		"ring_buffer_bytes_high":      {"ring_buffer_bytes must be a power of two between 65536 and 1073741824", "not 2147483648"},
		"ring_buffer_bytes_odd":       {"ring_buffer_bytes must be a power of two between 65536 and 1073741824", "not 100000"},
		"ring_buffer_bytes_negative":  {"ring_buffer_bytes must be a power of two between 65536 and 1073741824", "not -65536"},
		"user_share_low":              {"ring_buffer_user_share must be between 0.01 and 1, not 0"},
		"user_share_high":             {"ring_buffer_user_share must be between 0.01 and 1, not 1.5"},
		"user_share_nan":              {"ring_buffer_user_share must be between 0.01 and 1, not NaN"},
		"off_cpu_threshold_low":       {"off_cpu_threshold must be 0, or between 1e-06 and 1, not 1e-07"},
		"off_cpu_threshold_negative":  {"off_cpu_threshold must be 0, or between 1e-06 and 1, not -0.5"},
		"off_cpu_threshold_high":      {"off_cpu_threshold must be 0, or between 1e-06 and 1, not 1.1"},
		"off_cpu_threshold_nan":       {"off_cpu_threshold must be 0, or between 1e-06 and 1, not NaN"},
		"off_cpu_minimum_low":         {"off_cpu_minimum must be between 0s and 1m0s, not -1ns"},
		"off_cpu_minimum_high":        {"off_cpu_minimum must be between 0s and 1m0s, not 1m1s"},
		"off_cpu_ring_low":            {"off_cpu_ring_buffer_bytes must be a power of two between 65536 and 1073741824", "not 32768"},
		"off_cpu_ring_high":           {"off_cpu_ring_buffer_bytes must be a power of two between 65536 and 1073741824", "not 2147483648"},
		"prefix_long":                 {"labels::prefix must be valid UTF-8 of at most 256 bytes"},
		"max_labels_low":              {"labels::max_labels must be between 1 and 64, not 0"},
		"max_labels_high":             {"labels::max_labels must be between 1 and 64, not 65"},
		"max_key_bytes_low":           {"labels::max_key_bytes must be between 1 and 256, not 0"},
		"max_key_bytes_high":          {"labels::max_key_bytes must be between 1 and 256, not 257"},
		"max_value_bytes_low":         {"labels::max_value_bytes must be between 1 and 1024, not 0"},
		"max_value_bytes_high":        {"labels::max_value_bytes must be between 1 and 1024, not 1025"},
		"unwind":                      {`unwind must be "rows" or "frame_pointers", not "guess"`},
		"max_symbol_bytes":            {"max_symbol_bytes must be between 1048576 and 1073741824, not 0"},
		"max_unwind_bytes":            {"max_unwind_bytes must be between 1048576 and 1073741824, not 1"},
		"symbolize":                   {`symbolize must be "local" or "none", not "remote"`},
		"error_mode":                  {`error_mode must be "propagate" or "ignore", not "panic"`},
		"bpf_verifier_log_level_low":  {"bpf_verifier_log_level must be between 0 and 2, not -1"},
		"bpf_verifier_log_level_high": {"bpf_verifier_log_level must be between 0 and 2, not 3"},
		"max_pending_batches_low":     {"max_pending_batches must be between 1 and 64, not 0"},
		"max_pending_batches_high":    {"max_pending_batches must be between 1 and 64, not 65"},
		"max_batch_bytes_low":         {"max_batch_bytes must be between 1048576 and 1073741824, not 1048575"},
		"max_request_bytes_low":       {"max_request_bytes must be between 524288 and 1073741824, not 524287"},
		"max_request_bytes_high":      {"max_request_bytes must be between 524288 and 1073741824, not 1073741825"},
		"max_batch_bytes_high":        {"max_batch_bytes must be between 1048576 and 1073741824, not 1073741825"},
		"type_conflicts":              {`labels::type_conflicts must be "stringify" or "refuse", not "guess"`},
		"budgets": {
			"labels::budgets::users must be between 1 and 4096, not 0", "labels::budgets::keys must be between 1 and 1048576, not 0",
			"labels::budgets::values must be between 1 and 1048576, not 1048577", "labels::budgets::sets must be between 1 and 1048576, not 1048577",
			"labels::budgets::bytes must be between 65536 and 1073741824, not 1",
		},
		"rules": {
			`labels::rules::0: action must be keep, drop, rename, hash, cap_value_bytes or cap_distinct_values, not "guess"`,
			`labels::rules::1: source must be v0, v1, thread_context or go, not "python"`,
			`labels::rules::2: to must be valid UTF-8 of 1 to 256 bytes, not ""`,
			"labels::rules::3: limit is for the actions cap_value_bytes and cap_distinct_values, not for hash",
			"labels::rules::4: limit must be between 1 and 1024, not 0", `labels::rules::4: name "a" is another rule's, too`,
			"labels::rules::5: limit must be between 1 and 100000, not 100001",
			"labels::rules::6: uid must be between 0 and 4294967295, not -1", `executable must begin with / or **, not "python"`,
			`labels::rules::7: executable is not a valid glob: "/["`,
			"labels::rules::8: to is for the action rename, not for drop",
		},
		"metrics_low": {
			"metrics::interval must be between 1s and 10m0s, not 999ms", "metrics::max_user_series must be between 1 and 1048576, not 0",
			"metrics::expiry must be between 1s and 24h0m0s, not 999ms", `metrics::label_keys: a key must be valid UTF-8 of 1 to 256 bytes, not ""`,
		},
		"metrics_high": {
			"metrics::interval must be between 1s and 10m0s, not 11m0s", "metrics::max_user_series must be between 1 and 1048576, not 1048577",
			"metrics::expiry must be between 1s and 24h0m0s, not 25h0m0s", "metrics::label_keys must have at most 16 keys, not 18",
			`metrics::label_keys: "a" is there twice`, `metrics::label_keys: "custom_labels.overflow" must not begin with "custom_labels."`,
		},
		"max_user_entries_low":  {"max_user_entries must be between 1 and 1048576, not 0"},
		"max_user_entries_high": {"max_user_entries must be between 1 and 1048576, not 1048577"},
		"id_keys_alone":         {"labels::trace_id_keys and labels::span_id_keys must be set together"},
		"id_keys_many":          {"labels::trace_id_keys must have at most 8 keys, not 9"},
		"id_keys_empty":         {"labels::trace_id_keys: key must have 1 to 256 bytes, not 0"},
		"id_keys_format":        {`labels::trace_id_keys: format must be "hex" or "decimal", not "octal"`},
		"several":               {"samples_per_second must be", `error_mode must be "propagate" or "ignore", not ""`},
	} {
		t.Run(section, func(t *testing.T) {
			cfg, err := load(t, "custom_labels/"+section)
			require.NoError(t, err)
			err = confmap.Validate(cfg)
			require.Error(t, err)
			for _, want := range wants {
				require.ErrorContains(t, err, want)
			}
			wrongKeys := 1
			if section == "several" || section == "budgets" || section == "rules" || strings.HasPrefix(section, "metrics_") {
				wrongKeys = len(wants)
			}
			require.Len(t, strings.Split(err.Error(), "\n"), wrongKeys)
		})
	}
}

func TestConfigUnknownKey(t *testing.T) {
	_, err := load(t, "custom_labels/unknown_key")
	require.ErrorContains(t, err, "sample_per_second")
}

func TestConfigPrefixNotUTF8(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Labels.Prefix = "\xff"
	require.ErrorContains(t, cfg.Validate(), "labels::prefix must be valid UTF-8")
}
