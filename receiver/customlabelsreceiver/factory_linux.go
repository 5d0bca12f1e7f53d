//go:build amd64 || arm64

package customlabelsreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"
)

func createProfiles(
	_ context.Context,
	set receiver.Settings,
	cfg component.Config,
	next xconsumer.Profiles,
) (xreceiver.Profiles, error) {
	return newProfilesReceiver(cfg.(*Config), set, next, newPipeline)
}
