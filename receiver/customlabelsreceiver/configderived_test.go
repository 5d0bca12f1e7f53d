package customlabelsreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
)

type derived struct {
	symbols, batch, pending int
	offCPURing, unwind      int
	budgets                 labels.Budgets
	entries, series, frames int
	expiry                  time.Duration
}

func derivedOf(o *pipeline.Options) derived {
	return derived{
		o.Symbols.MaxBytes, o.Batches.MaxBytes, o.Batches.MaxPending, o.OffCPU.RingBytes, o.Unwind.MaxBytes,
		o.Labels.Budgets, o.Batches.MaxUserEntries, o.Metrics.MaxUserSeries, o.Batches.MaxUserFrames, o.Metrics.Expiry,
	}
}

func TestDerived(t *testing.T) {
	defaults := derived{
		symbols: 32 << 20, batch: 32 << 20, pending: 4, offCPURing: 4 << 20, unwind: 64 << 20,
		budgets: labels.Budgets{Users: 64, Keys: 1024, Values: 16384, Sets: 8192, Bytes: 4 << 20},
		entries: 65536, series: 2048, frames: 65536, expiry: 5 * time.Minute,
	}
	d := pipeline.Defaults()
	require.Equal(t, derivedOf(&d), defaults, "the pipeline alone has the same")
	for name, tc := range map[string]struct {
		set  func(*Config)
		want func(*derived)
	}{
		"defaults": {func(*Config) {}, func(*derived) {}},
		"least memory": {
			func(c *Config) { c.MaxMemoryBytes = 64 << 20 },
			func(d *derived) { d.symbols, d.batch, d.budgets.Users, d.frames = 8<<20, 8<<20, 16, 16384 },
		},
		"more memory": {
			func(c *Config) { c.MaxMemoryBytes = 1 << 30 },
			func(d *derived) {
				d.symbols, d.batch, d.pending, d.budgets.Users, d.frames = 128<<20, 128<<20, 16, 256, 262144
			},
		},
		"most memory": {
			func(c *Config) { c.MaxMemoryBytes = 64 << 30 },
			func(d *derived) {
				d.symbols, d.batch, d.pending, d.budgets.Users, d.frames = 1<<30, 1<<30, 64, 4096, 1<<20
			},
		},
		"least BPF memory": {
			func(c *Config) { c.MaxBpfMapBytes = 16 << 20 },
			func(d *derived) { d.offCPURing, d.unwind = 512<<10, 8<<20 },
		},
		"odd BPF memory": {
			func(c *Config) { c.MaxBpfMapBytes = 100 << 20 },
			func(d *derived) { d.offCPURing, d.unwind = 2<<20, 50<<20 },
		},
		"most BPF memory": {
			func(c *Config) { c.MaxBpfMapBytes = 8 << 30 },
			func(d *derived) { d.offCPURing, d.unwind = 256<<20, 1<<30 },
		},
		"little for a user": {
			func(c *Config) { c.MaxUserLabelSets = 8 },
			func(d *derived) {
				d.budgets = labels.Budgets{Users: 4096, Keys: 1, Values: 16, Sets: 8, Bytes: 64 << 10}
				d.entries, d.series = 64, 2
			},
		},
		"much for a user": {
			func(c *Config) { c.MaxUserLabelSets = 131072 },
			func(d *derived) {
				d.budgets = labels.Budgets{Users: 4, Keys: 16384, Values: 262144, Sets: 131072, Bytes: 64 << 20}
				d.entries, d.series = 1<<20, 32768
			},
		},
		"much for a user of little memory": {
			func(c *Config) { c.MaxUserLabelSets, c.MaxMemoryBytes = 131072, 64<<20 },
			func(d *derived) {
				d.symbols, d.batch, d.frames = 8<<20, 8<<20, 16384
				d.budgets = labels.Budgets{Users: 1, Keys: 16384, Values: 262144, Sets: 131072, Bytes: 64 << 20}
				d.entries, d.series = 1<<20, 32768
			},
		},
		"metrics": {
			func(c *Config) { c.Metrics.Interval = time.Minute },
			func(d *derived) { d.expiry = 20 * time.Minute },
		},
		"metrics between batches": {
			func(c *Config) { c.ReportInterval, c.Metrics.Interval = 5*time.Minute, 10*time.Second },
			func(d *derived) { d.expiry = 610 * time.Second },
		},
		"longest intervals": {
			func(c *Config) { c.ReportInterval, c.Metrics.Interval = maxReportInterval, maxMetricInterval },
			func(d *derived) { d.expiry = 200 * time.Minute },
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := defaultConfig()
			tc.set(cfg)
			require.NoError(t, cfg.Validate())
			want := defaults
			tc.want(&want)
			o := cfg.options()
			require.Equal(t, want, derivedOf(&o))
			require.LessOrEqual(t, o.Labels.Budgets.Users, labels.MaxBudgetUsers)
			require.GreaterOrEqual(t, o.Labels.Budgets.Bytes, labels.MinBudgetBytes)
			require.LessOrEqual(t, o.Symbols.MaxBytes+4*o.Batches.MaxBytes, cfg.MaxMemoryBytes, "a full batch can be handed over")
		})
	}
}
