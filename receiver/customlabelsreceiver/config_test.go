package customlabelsreceiver

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
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
	cfg := defaultConfig()
	return cfg, conf.Unmarshal(cfg)
}

func TestConfigValid(t *testing.T) {
	offCPU := func(threshold float64, minimum time.Duration) configoptional.Optional[OffCPU] {
		return configoptional.Some(OffCPU{Threshold: threshold, Minimum: minimum})
	}
	lowest := defaultConfig()
	lowest.SamplesPerSecond = 1
	lowest.ReportInterval = 100 * time.Millisecond
	lowest.Metrics = Metrics{LabelKeys: []string{"t"}, Interval: time.Second}
	lowest.OffCPU = offCPU(1e-6, 0)
	lowest.MaxMemoryBytes, lowest.MaxBpfMapBytes, lowest.MaxBackgroundCPU = 64<<20, 16<<20, 0.01
	lowest.MaxUserLabelSets, lowest.MaxRequestBytes = 8, 512<<10

	highest := defaultConfig()
	highest.SamplesPerSecond = 10_000
	highest.ReportInterval = 5 * time.Minute
	highest.Metrics.Interval = 10 * time.Minute
	highest.OffCPU = offCPU(1, time.Minute)
	highest.MaxMemoryBytes, highest.MaxBpfMapBytes, highest.MaxBackgroundCPU = 1<<36, 1<<33, 64
	highest.MaxUserLabelSets, highest.MaxRequestBytes = 1<<17, 1<<30

	unlabelled := defaultConfig()
	unlabelled.Labels.Enabled = false
	withOffCPU, withMinimum := defaultConfig(), defaultConfig()
	withOffCPU.OffCPU = offCPU(0.01, time.Millisecond)
	withMinimum.OffCPU = offCPU(0.01, 2*time.Millisecond)
	uid := int64(1000)

	for section, want := range map[string]*Config{
		"custom_labels": {
			SamplesPerSecond: 19,
			ReportInterval:   5 * time.Second,
			Labels: Labels{
				Enabled: true, Prefix: "process.context.label.", Names: NamesAsPublished, TypeConflicts: TypeConflictsStringify,
			},
			Metrics: Metrics{Interval: 15 * time.Second},
			Attributes: Attributes{
				ThreadID: AttributeOn{Enabled: true}, ThreadName: AttributeOn{Enabled: true}, TraceID: AttributeOn{Enabled: true},
			},
			UnknownService:   true,
			OffCPU:           configoptional.Default(OffCPU{Threshold: 0.01, Minimum: time.Millisecond}),
			Unwind:           UnwindRows,
			Symbolize:        SymbolizeLocal,
			Runtimes:         Runtimes{Python: RuntimeOn{Enabled: true}, Hotspot: RuntimeOn{Enabled: true}, V8: RuntimeOn{Enabled: true}},
			ErrorMode:        ErrorModePropagate,
			MaxMemoryBytes:   256 << 20,
			MaxBpfMapBytes:   128 << 20,
			MaxBackgroundCPU: 1,
			MaxUserLabelSets: 8192,
			MaxRequestBytes:  3584 << 10,
		},
		"custom_labels/everything": {
			SamplesPerSecond: 97,
			ReportInterval:   time.Second,
			Targets: Targets{
				Include: []TargetSelector{{Executable: "/bin/**", UID: &uid}}, Exclude: []TargetSelector{{PID: 7}}, LabelledOnly: true,
			},
			Labels: Labels{
				Enabled:     true,
				Names:       NamesPrometheus,
				TraceIDKeys: []IDKey{{Key: "trace"}, {Key: "root-span-id", Format: IDDecimal}},
				SpanIDKeys:  []IDKey{{Key: "span", Format: IDHex}},
				Rules: []LabelRule{
					{Name: "secrets", Key: "secret.*", Source: "custom_labels_v1", Executable: "/usr/bin/**", UID: []int64{0, 1000}, Action: "drop"},
					{Key: "user?", Action: "rename", To: "user"},
					{Action: "cap_distinct_values", Limit: 100},
				},
				HashSalt:      "pepper",
				TypeConflicts: TypeConflictsRefuse,
				PerContainer:  true,
			},
			Metrics:                 Metrics{LabelKeys: []string{"tenant", "http.route"}, Interval: time.Minute},
			Attributes:              Attributes{CPULogicalNumber: AttributeOff{Enabled: true}},
			ResourceAttributes:      ResourceAttributes{ProcessCommandArgs: AttributeOff{Enabled: true}},
			ResourceFromEnvironment: true,
			OffCPU:                  offCPU(0.25, 5*time.Microsecond),
			Unwind:                  UnwindFramePointers,
			Symbolize:               SymbolizeNone,
			ErrorMode:               ErrorModeIgnore,
			MaxMemoryBytes:          128 << 20,
			MaxBpfMapBytes:          64 << 20,
			MaxBackgroundCPU:        0.25,
			MaxUserLabelSets:        1024,
			MaxRequestBytes:         16 << 20,
			BatchPerUser:            true,
		},
		"custom_labels/lowest":        lowest,
		"custom_labels/highest":       highest,
		"custom_labels/unlabelled":    unlabelled,
		"custom_labels/off_cpu":       withOffCPU,
		"custom_labels/off_cpu_empty": withOffCPU,
		"custom_labels/off_cpu_alone": withMinimum,
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
		"max_memory_low":             {"max_memory_bytes must be between 67108864 and 68719476736, not 1048576"},
		"max_bpf_map_high":           {"max_bpf_map_bytes must be between 16777216 and 8589934592, not 8589934593"},
		"max_background_cpu_low":     {"max_background_cpu value must be greater than or equal to 0.01"},
		"max_background_cpu_nan":     {"max_background_cpu must be a number, not NaN"},
		"samples_per_second_low":     {"samples_per_second value must be greater than or equal to 1"},
		"samples_per_second_high":    {"samples_per_second value must be less than or equal to 10000"},
		"report_interval_low":        {"report_interval must be between 100ms and 5m0s, not 99ms"},
		"report_interval_high":       {"report_interval must be between 100ms and 5m0s, not 5m1s"},
		"off_cpu_threshold_low":      {"off_cpu: threshold value must be greater than or equal to 1e-06"},
		"off_cpu_threshold_negative": {"off_cpu: threshold value must be greater than or equal to 1e-06"},
		"off_cpu_threshold_high":     {"off_cpu: threshold value must be less than or equal to 1"},
		"off_cpu_threshold_nan":      {"off_cpu::threshold must be a number, not NaN"},
		"off_cpu_minimum_low":        {"off_cpu::minimum must be between 0s and 1m0s, not -1ns"},
		"off_cpu_minimum_high":       {"off_cpu::minimum must be between 0s and 1m0s, not 1m1s"},
		"prefix_long":                {"labels: prefix exceeds maximum length of 256"},
		"unwind":                     {"unwind must be one of [rows, frame_pointers]"},
		"symbolize":                  {"symbolize must be one of [local, none]"},
		"error_mode":                 {"error_mode must be one of [propagate, ignore]"},
		"max_request_bytes_low":      {"max_request_bytes must be between 524288 and 1073741824, not 524287"},
		"max_request_bytes_high":     {"max_request_bytes must be between 524288 and 1073741824, not 1073741825"},
		"names":                      {"labels: names must be one of [as_published, prometheus]"},
		"type_conflicts":             {"labels: type_conflicts must be one of [stringify, refuse]"},
		"rules": {
			`labels::rules::0: action must be keep, drop, rename, hash, cap_value_bytes or cap_distinct_values, not "guess"`,
			`labels::rules::1: source must be custom_labels_v0, custom_labels_v1, thread_context or go_labels, not "python"`,
			"to is for the action rename, not for drop",
			`labels::rules::2: to must be valid UTF-8 of 1 to 256 bytes, not ""`,
			"labels::rules::3: limit is for the actions cap_value_bytes and cap_distinct_values, not for hash",
			"labels::rules::4: limit must be between 1 and 1024, not 0", `labels::rules::4: name "a" is another rule's, too`,
			"labels::rules::5: limit must be between 1 and 100000, not 100001",
			"labels::rules::6: uid must be between 0 and 4294967295, not -1", `executable must begin with / or **/, not "python"`,
			`labels::rules::7: executable is not a valid glob: "/["`,
			"labels::rules::8: to is for the action rename, not for drop",
		},
		"rules_order": {
			"labels::rules::1 would never apply: of each label only the first rule that applies is used, and labels::rules::0 applies to all that it is for",
			"labels::rules::3 would never apply: of each label only the first rule that applies is used, and labels::rules::2 applies to all that it is for",
		},
		"metrics_low": {
			"metrics::interval must be between 1s and 10m0s, not 999ms",
			`metrics::label_keys: a key must be valid UTF-8 of 1 to 256 bytes, not ""`,
		},
		"metrics_unread": {"metrics::label_keys must be empty with labels::enabled: false"},
		"rules_unread":   {"labels::rules must be empty with labels::enabled: false"},
		"id_keys_unread": {"labels::trace_id_keys and labels::span_id_keys must be empty with labels::enabled: false"},
		"metrics_names": {
			`metrics::label_keys: "job" is a label that Prometheus sets itself`, `metrics::label_keys: "instance" is a label`,
			`metrics::label_keys: "http.route" and "http_route" are one label, "http_route", in Prometheus`,
			`metrics::label_keys: "custom_labels.overflow" and "custom-labels-overflow" are one label, "custom_labels_overflow", in Prometheus`,
		},
		"metrics_left": {
			`metrics::label_keys: no label "secret" is left by labels::rules`, `metrics::label_keys: no label "customer" is left by labels::rules`,
			`metrics::label_keys: "trace" is in labels::trace_id_keys or labels::span_id_keys`, `metrics::label_keys: "span" is in`,
		},
		"metrics_high": {
			"metrics::interval must be between 1s and 10m0s, not 11m0s",
			"metrics::label_keys must have at most 16 keys, not 18",
			`metrics::label_keys: "a" is there twice`, `metrics::label_keys: "custom_labels.overflow" must not begin with "custom_labels."`,
		},
		"max_user_label_sets_low":  {"max_user_label_sets value must be greater than or equal to 8"},
		"max_user_label_sets_high": {"max_user_label_sets value must be less than or equal to 131072"},
		"id_keys_alone":            {"labels::trace_id_keys and labels::span_id_keys must be set together"},
		"id_keys_many":             {"labels::trace_id_keys must have at most 8 keys, not 9"},
		"id_keys_empty":            {"labels::trace_id_keys: key must have 1 to 256 bytes, not 0"},
		"id_keys_format":           {`labels::trace_id_keys: format must be "hex" or "decimal", not "octal"`},
		"id_keys_same":             {`labels::trace_id_keys and labels::span_id_keys: one label, "id", has not both ids`},
		"several":                  {"samples_per_second value must be", "error_mode must be one of [propagate, ignore]"},
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
			if section == "several" || section == "rules" || section == "rules_order" || strings.HasPrefix(section, "metrics_") {
				wrongKeys = len(wants)
			}
			if strings.Contains(wants[0], "_bytes must be") {
				wrongKeys = 2 // and in the words of what is generated
			}
			require.Len(t, strings.Split(err.Error(), "\n"), wrongKeys)
		})
	}
}

func TestConfigUnknownKey(t *testing.T) {
	_, err := load(t, "custom_labels/unknown_key")
	require.ErrorContains(t, err, "sample_per_second")
	for _, key := range []string{"ring_buffer_bytes", "off_cpu_threshold", "bpf_verifier_log_level", "labels::budgets", "attributes::thread.ids"} {
		err := confmap.NewFromStringMap(withKey(key, 1)).Unmarshal(defaultConfig())
		require.ErrorContains(t, err, key[strings.LastIndex(key, ":")+1:])
	}
}

func TestConfigPrefixNotUTF8(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Labels.Prefix = "\xff"
	require.ErrorContains(t, cfg.Validate(), "labels::prefix must be valid UTF-8")
}

func TestBytesWithUnit(t *testing.T) {
	for _, key := range []string{"max_memory_bytes", "max_bpf_map_bytes", "max_request_bytes"} {
		c := createDefaultConfig().(*Config)
		err := confmap.NewFromStringMap(map[string]any{key: "256MiB"}).Unmarshal(c)
		require.ErrorContains(t, err, key+` must be a whole number of bytes, such as 268435456 for 256 MiB, not "256MiB"`)
		require.NoError(t, confmap.NewFromStringMap(map[string]any{key: 256 << 20}).Unmarshal(c))
	}
}

// Of a number of samples no part is left out in silence.
func TestWholeSamples(t *testing.T) {
	for rate, want := range map[any]int{19: 19, 20.0: 20, 19.5: 0, 0.5: 0} {
		c := createDefaultConfig().(*Config)
		err := confmap.NewFromStringMap(map[string]any{"samples_per_second": rate}).Unmarshal(c)
		if want == 0 {
			require.ErrorContains(t, err, fmt.Sprintf("samples_per_second must be a whole number, not %v", rate))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, c.SamplesPerSecond)
	}
}
