package customlabelsreceiver

import (
	"context"

	"go.opentelemetry.io/collector/consumer/xconsumer"
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
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID:             set.ID,
		LongLivedCtx:           true,
		ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	return &observedConsumer{Profiles: next, obs: obs}, nil
}

// ConsumeProfiles passes profiles on. They belong to the next consumer afterwards.
func (c *observedConsumer) ConsumeProfiles(ctx context.Context, profiles pprofile.Profiles) error {
	ctx = c.obs.StartProfilesOp(ctx)
	samples := profiles.SampleCount()
	err := c.Profiles.ConsumeProfiles(ctx, profiles)
	c.obs.EndProfilesOp(ctx, metadata.Type.String(), samples, err)
	return err
}
