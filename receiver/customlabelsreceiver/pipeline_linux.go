//go:build amd64 || arm64

package customlabelsreceiver

import (
	"errors"

	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
)

var errNoPipeline = errors.New("the sampling pipeline is not part of this build")

// newPipeline wires sampler, process table, label decoder and profile builder.
func newPipeline(*Config, receiver.Settings, xconsumer.Profiles, func(error)) (pipeline, error) {
	return nil, errNoPipeline
}
