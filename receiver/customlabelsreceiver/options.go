package customlabelsreceiver

import (
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// options translates a configuration that Validate has checked. They lack what is not
// configured: who gets what is made, and how that is reported.
func (c *Config) options() pipeline.Options {
	o := pipeline.Defaults()
	c.derive(&o)
	o.SamplesPerSecond = c.SamplesPerSecond
	o.ReportInterval = c.ReportInterval
	if off := c.OffCPU.Get(); off != nil {
		o.OffCPU.Threshold, o.OffCPU.Minimum = off.Threshold, off.Minimum
	}
	o.Targets = pipeline.TargetOptions{Selection: c.Targets.selection(), LabelledOnly: c.Targets.LabelledOnly}
	c.Labels.setOptions(&o.Labels)
	o.Metrics.LabelKeys, o.Metrics.Interval = c.Metrics.LabelKeys, c.Metrics.Interval
	o.Attributes = pipeline.AttributeOptions{
		Trace:    c.Attributes.TraceID.Enabled,
		ThreadID: c.Attributes.ThreadID.Enabled, ThreadName: c.Attributes.ThreadName.Enabled,
		CPU:         c.Attributes.CPULogicalNumber.Enabled,
		CommandArgs: c.ResourceAttributes.ProcessCommandArgs.Enabled,
		Environment: c.ResourceFromEnvironment, NamedServiceOnly: !c.UnknownService,
	}
	o.Unwind.FramePointersOnly = c.Unwind != UnwindRows
	o.SkipRuntimes = [...]bool{
		record.RuntimeNone:    false,
		record.RuntimeCPython: !c.Runtimes.Python.Enabled,
		record.RuntimeHotSpot: !c.Runtimes.Hotspot.Enabled,
		record.RuntimeV8:      !c.Runtimes.V8.Enabled,
	}
	o.Symbols.Skip = c.Symbolize != SymbolizeLocal
	o.Batches.MaxRequestBytes, o.Batches.PerUser = c.MaxRequestBytes, c.BatchPerUser
	o.Limits = pipeline.LimitOptions{
		MemoryBytes: c.MaxMemoryBytes, BPFMapBytes: c.MaxBpfMapBytes, BackgroundCPU: c.MaxBackgroundCPU,
	}
	return o
}

func (c *Labels) setOptions(o *pipeline.LabelOptions) {
	o.Skip = !c.Enabled
	o.Prefix = c.Prefix
	o.PrometheusNames = c.Names == NamesPrometheus
	o.Promotion = labels.Promotion{TraceID: idKeys(c.TraceIDKeys), SpanID: idKeys(c.SpanIDKeys)}
	o.Rules = c.rules()
	o.HashSalt = []byte(c.HashSalt)
	o.RefuseConflicts = c.TypeConflicts == TypeConflictsRefuse
	o.PerContainer = c.PerContainer
}

func idKeys(list []IDKey) (out []labels.IDKey) {
	for _, k := range list {
		out = append(out, labels.IDKey{Key: k.Key, Decimal: k.Format == IDDecimal})
	}
	return out
}
