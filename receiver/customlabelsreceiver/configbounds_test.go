//go:build linux && (amd64 || arm64)

package customlabelsreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
)

// What the configuration allows is what the sampler takes.
func TestConfigBoundsAreTheSamplers(t *testing.T) {
	require.Equal(t, bpf.MinSamplesPerSecond, minSamplesPerSecond)
	require.Equal(t, bpf.MaxSamplesPerSecond, maxSamplesPerSecond)
	require.Equal(t, bpf.MinRingBufferBytes, minRingBufferBytes)
	require.Equal(t, bpf.MaxRingBufferBytes, maxRingBufferBytes)
	require.Equal(t, bpf.MinOffCPUThreshold, minOffCPUThreshold)
	require.Equal(t, bpf.MinUserShare, minUserShare)
	require.Equal(t, bpf.MaxLabels, maxLabels)
	require.Equal(t, bpf.MaxLabelKeyBytes, maxLabelKeyBytes)
	require.Equal(t, bpf.MaxLabelValueBytes, maxLabelValueBytes)
}
