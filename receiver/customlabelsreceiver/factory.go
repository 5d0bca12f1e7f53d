package customlabelsreceiver

import (
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadata"
)

// NewFactory returns the factory of the receiver, for the signals profiles and metrics,
// which share one sampler for one configuration. On
// systems that the receiver does not support it can be registered too; creating
// a receiver then returns an error.
func NewFactory() receiver.Factory {
	all := newReceivers(newPipeline)
	return xreceiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xreceiver.WithProfiles(all.createProfiles, metadata.ProfilesStability),
		xreceiver.WithMetrics(all.createMetrics, metadata.MetricsStability),
	)
}
