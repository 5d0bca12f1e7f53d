package customlabelsreceiver

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

// Where nothing is configured, the pipeline has its defaults.
func TestOptionsDefault(t *testing.T) {
	want := pipeline.Defaults()
	want.Labels.HashSalt = []byte{}
	require.Equal(t, want, defaultConfig().options())
}

// Every key reaches the pipeline, as what it means there.
func TestOptionsEverything(t *testing.T) {
	cfg, err := load(t, "custom_labels/everything")
	require.NoError(t, err)
	user := uint32(1000)
	want := pipeline.Defaults()
	cfg.derive(&want)
	want.SamplesPerSecond = 97
	want.ReportInterval = time.Second
	want.OffCPU.Threshold, want.OffCPU.Minimum = 0.25, 5*time.Microsecond
	want.Targets = pipeline.TargetOptions{
		Selection: targets.Selection{
			Include: []targets.Selector{{Executable: "/bin/**", UID: &user}}, Exclude: []targets.Selector{{PID: 7}},
		},
		LabelledOnly: true,
	}
	want.Labels.Prefix = ""
	want.Labels.PrometheusNames = true
	want.Labels.Promotion = labels.Promotion{
		TraceID: []labels.IDKey{{Key: "trace"}, {Key: "root-span-id", Decimal: true}}, SpanID: []labels.IDKey{{Key: "span"}},
	}
	want.Labels.Rules = []labels.Rule{
		{Key: "secret.*", Source: record.ABIV1, Executable: "/usr/bin/**", UIDs: []uint32{0, 1000}, Action: labels.Drop},
		{Key: "user?", Action: labels.Rename, To: "user"},
		{Action: labels.CapDistinctValues, Limit: 100},
	}
	want.Labels.HashSalt = []byte("pepper")
	want.Labels.RefuseConflicts = true
	want.Labels.PerContainer = true
	want.Metrics.LabelKeys, want.Metrics.Interval = []string{"tenant", "http.route"}, time.Minute
	want.Attributes = pipeline.AttributeOptions{CPU: true, CommandArgs: true, Environment: true, NamedServiceOnly: true}
	want.Unwind.FramePointersOnly, want.Symbols.Skip = true, true
	for kind := record.RuntimeNone + 1; kind < record.NumRuntimes; kind++ {
		want.SkipRuntimes[kind] = true
	}
	want.Batches.MaxRequestBytes, want.Batches.PerUser = 16<<20, true
	want.Limits = pipeline.LimitOptions{MemoryBytes: 128 << 20, BPFMapBytes: 64 << 20, BackgroundCPU: 0.25}
	require.Equal(t, want, cfg.options())
	unlabelled, err := load(t, "custom_labels/unlabelled")
	require.NoError(t, err)
	require.True(t, unlabelled.options().Labels.Skip)
	require.Equal(t, 16<<20, want.Symbols.MaxBytes, "what is derived follows the keys")
	require.Equal(t, 20*time.Minute, want.Metrics.Expiry)
}

// Each language runtime has a key of its own that switches it off.
func TestOptionsRuntimes(t *testing.T) {
	all, names := 0, reflect.TypeFor[Runtimes]()
	skipped := map[record.RuntimeKind]bool{}
	for i := range names.NumField() {
		name, isKey := names.Field(i).Tag.Lookup("mapstructure")
		if !isKey {
			continue
		}
		cfg, key := defaultConfig(), "runtimes::"+name
		require.NoError(t, confmap.NewFromStringMap(withKey(key+"::enabled", false)).Unmarshal(cfg))
		for kind, skip := range cfg.options().SkipRuntimes {
			if skip {
				skipped[record.RuntimeKind(kind)] = true
				all++
			}
		}
	}
	require.Equal(t, record.NumRuntimes-1, all, "a key switches off one")
	require.Len(t, skipped, all)
	require.NotContains(t, skipped, record.RuntimeNone)
}

// Each attribute has an option of its own.
func TestOptionsAttributes(t *testing.T) {
	for want, key := range map[pipeline.AttributeOptions]string{
		{ThreadID: true}: "attributes::thread.id", {ThreadName: true}: "attributes::thread.name",
		{CPU: true}: "attributes::cpu.logical_number", {Trace: true}: "attributes::trace_id",
		{CommandArgs: true}: "resource_attributes::process.command_args",
	} {
		cfg := defaultConfig()
		cfg.Attributes, cfg.ResourceAttributes = Attributes{}, ResourceAttributes{}
		require.NoError(t, confmap.NewFromStringMap(withKey(key+"::enabled", true)).Unmarshal(cfg))
		require.Equal(t, want, cfg.options().Attributes)
	}
}
