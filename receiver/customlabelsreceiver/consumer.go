package customlabelsreceiver

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadata"
)

// observedConsumer keeps the metrics and spans that every receiver of the
// collector has. They count entries of the profiles' sample lists, as the metrics
// of exporters do; hits are counted by the receiver's own metrics.
type observedConsumer struct {
	xconsumer.Profiles
	obs *receiverhelper.ObsReport
}

func newObservedConsumer(set receiver.Settings, next xconsumer.Profiles) (*observedConsumer, error) {
	obs, err := newObsReport(set)
	if err != nil {
		return nil, err
	}
	return &observedConsumer{Profiles: next, obs: obs}, nil
}

func newObsReport(set receiver.Settings) (*receiverhelper.ObsReport, error) {
	return receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID:             set.ID,
		LongLivedCtx:           true,
		ReceiverCreateSettings: set,
	})
}

// ConsumeProfiles passes profiles on. They belong to the next consumer afterwards.
func (c *observedConsumer) ConsumeProfiles(ctx context.Context, profiles pprofile.Profiles) error {
	ctx = c.obs.StartProfilesOp(ctx)
	samples := profiles.SampleCount()
	err := c.Profiles.ConsumeProfiles(ctx, profiles)
	c.obs.EndProfilesOp(ctx, metadata.Type.String(), samples, err)
	return err
}

// observedMetrics is observedConsumer for metrics; it counts data points.
type observedMetrics struct {
	consumer.Metrics
	obs *receiverhelper.ObsReport
}

func newObservedMetrics(set receiver.Settings, next consumer.Metrics) (*observedMetrics, error) {
	obs, err := newObsReport(set)
	if err != nil {
		return nil, err
	}
	return &observedMetrics{Metrics: next, obs: obs}, nil
}

// ConsumeMetrics passes metrics on. They belong to the next consumer afterwards.
func (c *observedMetrics) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	ctx = c.obs.StartMetricsOp(ctx)
	points := metrics.DataPointCount()
	err := c.Metrics.ConsumeMetrics(ctx, metrics)
	c.obs.EndMetricsOp(ctx, metadata.Type.String(), points, err)
	return err
}
