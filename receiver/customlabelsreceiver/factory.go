package customlabelsreceiver

import (
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadata"
)

// NewFactory returns the factory of the receiver, for the signals profiles and metrics,
// which share one sampler for one configuration. On
// systems that the receiver does not support it can be registered too; creating
// a receiver then returns an error.
func NewFactory() receiver.Factory { return newFactory(newPipeline) }

// NewFactoryWith is [NewFactory] for tests of this module: change may set otherwise what no
// key says.
func NewFactoryWith(change func(*pipeline.Options)) receiver.Factory {
	return newFactory(func(cfg *Config, set receiver.Settings, next pipeline.Consumers, report func(pipeline.Concern, error)) (engine, error) {
		o := cfg.options()
		change(&o)
		return newPipelineWith(o, cfg, set, next, report)
	})
}

func newFactory(newEngine newEngineFunc) receiver.Factory {
	all := newReceivers(newEngine)
	return xreceiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xreceiver.WithProfiles(all.createProfiles, metadata.ProfilesStability),
		xreceiver.WithMetrics(all.createMetrics, metadata.MetricsStability),
	)
}
