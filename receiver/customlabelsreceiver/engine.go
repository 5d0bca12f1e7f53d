package customlabelsreceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap/zapcore"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadata"
)

// observedPipeline is a pipeline whose snapshots are the collector's metrics.
type observedPipeline struct {
	*pipeline.Pipeline
	telemetry *telemetry
}

// newPipeline makes the engine of the receivers.
func newPipeline(cfg *Config, set receiver.Settings, next pipeline.Consumers, report func(pipeline.Concern, error)) (engine, error) {
	return newPipelineWith(cfg.options(), cfg, set, next, report)
}

// newPipelineWith has options that may be other than the configuration's.
func newPipelineWith(
	o pipeline.Options, cfg *Config, set receiver.Settings, next pipeline.Consumers, report func(pipeline.Concern, error),
) (engine, error) {
	o.Kernel.WholeVerifierLog = set.Logger.Core().Enabled(zapcore.DebugLevel)
	o.Next, o.Logger, o.Report = next, set.Logger, report
	o.Scope = pipeline.Scope{Name: metadata.ScopeName, Version: set.BuildInfo.Version}
	p, err := pipeline.New(o)
	if err != nil {
		return nil, err
	}
	t, err := newTelemetry(set, cfg, p.Snapshot)
	if err != nil {
		return nil, errors.Join(err, p.Shutdown(context.Background()))
	}
	return &observedPipeline{p, t}, nil
}

// Start implements engine.
func (p *observedPipeline) Start(ctx context.Context) error {
	if err := p.Pipeline.Start(ctx); err != nil {
		return errors.Join(err, p.telemetry.close())
	}
	return nil
}

// Shutdown implements engine.
func (p *observedPipeline) Shutdown(ctx context.Context) error {
	return errors.Join(p.Pipeline.Shutdown(ctx), p.telemetry.close())
}
