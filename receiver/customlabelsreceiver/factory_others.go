//go:build !linux || !(amd64 || arm64)

package customlabelsreceiver

import (
	"context"
	"fmt"
	"runtime"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"
)

func createProfiles(
	context.Context,
	receiver.Settings,
	component.Config,
	xconsumer.Profiles,
) (xreceiver.Profiles, error) {
	return nil, fmt.Errorf("custom_labels needs Linux on amd64 or arm64, this is %s on %s", runtime.GOOS, runtime.GOARCH)
}
