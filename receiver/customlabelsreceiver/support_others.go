//go:build !linux || !(amd64 || arm64)

package customlabelsreceiver

import (
	"fmt"
	"runtime"

	"go.opentelemetry.io/collector/receiver"
)

// supported tells why there can be no receiver on this system.
func supported() error {
	return fmt.Errorf("custom_labels needs Linux on amd64 or arm64, this is %s on %s", runtime.GOOS, runtime.GOARCH)
}

func newPipeline(*Config, receiver.Settings, consumers, func(error)) (pipeline, error) {
	return nil, supported()
}
