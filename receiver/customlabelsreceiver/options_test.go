package customlabelsreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
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
	uid := int64(1000)
	cfg.Targets = TargetsConfig{Include: []TargetSelector{{Executable: "/bin/**", UID: &uid}}, Exclude: []TargetSelector{{PID: 7}}, LabelledOnly: true}
	cfg.TraceAttributes, cfg.ThreadAttributes = true, true
	user := uint32(1000)
	require.Equal(t, pipeline.Options{
		SamplesPerSecond: 97,
		ReportInterval:   time.Second,
		Ring:             pipeline.RingOptions{Bytes: 1 << 20, UserShare: 0.25},
		OffCPU:           pipeline.OffCPUOptions{Threshold: 0.25, Minimum: 5 * time.Microsecond, RingBytes: 2 << 20},
		Targets: pipeline.TargetOptions{
			Selection: targets.Selection{
				Include: []targets.Selector{{Executable: "/bin/**", UID: &user}}, Exclude: []targets.Selector{{PID: 7}},
			},
			LabelledOnly: true,
		},
		Labels: pipeline.LabelOptions{
			Skip:            true,
			StrictFileNames: true,
			Promotion: labels.Promotion{
				TraceID: []labels.IDKey{{Key: "trace"}, {Key: "root-span-id", Decimal: true}}, SpanID: []labels.IDKey{{Key: "span"}},
			},
			Rules: []labels.Rule{
				{Key: "secret.*", Source: labels.ABIV1, Executable: "/usr/bin/**", UIDs: []uint32{0, 1000}, Action: labels.Drop},
				{Key: "user?", Action: labels.Rename, To: "user"},
				{Action: labels.CapDistinctValues, Limit: 100},
			},
			HashSalt:        []byte("pepper"),
			RefuseConflicts: true,
			PerContainer:    true,
			Budgets:         labels.Budgets{Users: 1, Keys: 2, Values: 3, Sets: 4, Bytes: 64 << 10},
			MaxLabels:       10, MaxKeyBytes: 64, MaxValueBytes: 128,
		},
		Metrics: pipeline.MetricOptions{
			LabelKeys: []string{"tenant", "http.route"}, Interval: time.Minute, MaxUserSeries: 10, Expiry: time.Hour,
		},
		Attributes: pipeline.AttributeOptions{Trace: true, Thread: true, CPU: true, CommandLine: true, Environment: true},
		Unwind:     pipeline.UnwindOptions{FramePointersOnly: true, MaxBytes: 32 << 20},
		Symbols:    pipeline.SymbolOptions{Skip: true, MaxBytes: 64 << 20},
		Batches: pipeline.BatchOptions{
			MaxPending: 64, MaxBytes: 1 << 20, MaxRequestBytes: 16 << 20, MaxUserEntries: 100, PerUser: true,
		},
		Limits: pipeline.LimitOptions{MemoryBytes: 128 << 20, BPFMapBytes: 64 << 20, BackgroundCPU: 0.25},
		Kernel: pipeline.KernelOptions{SkipVersionCheck: true, VerifierLogLevel: 2},
	}, cfg.options())
}
