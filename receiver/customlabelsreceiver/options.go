package customlabelsreceiver

import (
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
)

// options translates a configuration that Validate has checked. They lack what is not
// configured: who gets what is made, and how that is reported.
func (c *Config) options() pipeline.Options {
	return pipeline.Options{
		SamplesPerSecond: c.SamplesPerSecond,
		ReportInterval:   c.ReportInterval,
		Ring:             pipeline.RingOptions{Bytes: c.RingBufferBytes, UserShare: c.RingBufferUserShare},
		OffCPU: pipeline.OffCPUOptions{
			Threshold: c.OffCPUThreshold, Minimum: c.OffCPUMinimum, RingBytes: c.OffCPURingBufferBytes,
		},
		Targets: pipeline.TargetOptions{Selection: c.Targets.selection(), LabelledOnly: c.Targets.LabelledOnly},
		Labels:  c.Labels.options(),
		Metrics: pipeline.MetricOptions{
			LabelKeys: c.Metrics.LabelKeys, Interval: c.Metrics.Interval,
			MaxUserSeries: c.Metrics.MaxUserSeries, Expiry: c.Metrics.Expiry,
		},
		Attributes: pipeline.AttributeOptions{
			Trace: c.TraceAttributes, Thread: c.ThreadAttributes, CPU: c.CPUAttribute,
			CommandLine: c.CommandLine, Environment: c.ResourceFromEnvironment,
		},
		Unwind:  pipeline.UnwindOptions{FramePointersOnly: c.Unwind != UnwindRows, MaxBytes: c.MaxUnwindBytes},
		Symbols: pipeline.SymbolOptions{Skip: c.Symbolize != SymbolizeLocal, MaxBytes: c.MaxSymbolBytes},
		Batches: pipeline.BatchOptions{
			MaxPending: c.MaxPendingBatches, MaxBytes: c.MaxBatchBytes, MaxRequestBytes: c.MaxRequestBytes,
			MaxUserEntries: c.MaxUserEntries, PerUser: c.BatchPerUser,
		},
		Limits: pipeline.LimitOptions{
			MemoryBytes: c.MaxMemoryBytes, BPFMapBytes: c.MaxBPFMapBytes, BackgroundCPU: c.MaxBackgroundCPU,
		},
		Kernel: pipeline.KernelOptions{SkipVersionCheck: c.NoKernelVersionCheck, VerifierLogLevel: c.BPFVerifierLogLevel},
	}
}

func (c *LabelsConfig) options() pipeline.LabelOptions {
	return pipeline.LabelOptions{
		Skip:            !c.Enabled,
		Prefix:          c.Prefix,
		StrictFileNames: c.StrictFileNames,
		Promotion:       labels.Promotion{TraceID: idKeys(c.TraceIDKeys), SpanID: idKeys(c.SpanIDKeys)},
		Rules:           c.rules(),
		HashSalt:        []byte(c.HashSalt),
		RefuseConflicts: c.TypeConflicts == TypeConflictsRefuse,
		PerContainer:    c.PerContainer,
		Budgets:         c.Budgets.budgets(),
		MaxLabels:       c.MaxLabels,
		MaxKeyBytes:     c.MaxKeyBytes,
		MaxValueBytes:   c.MaxValueBytes,
	}
}

func idKeys(list []IDKey) (out []labels.IDKey) {
	for _, k := range list {
		out = append(out, labels.IDKey{Key: k.Key, Decimal: k.Format == IDDecimal})
	}
	return out
}
