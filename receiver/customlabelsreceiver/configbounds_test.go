//go:build linux && (amd64 || arm64)

package customlabelsreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What the configuration allows is what the sampler takes.
func TestConfigBoundsAreTheSamplers(t *testing.T) {
	s := readSchema(t)
	rate, threshold := s.Properties["samples_per_second"], s.Properties["off_cpu"].Properties["threshold"]
	require.EqualValues(t, bpf.MinSamplesPerSecond, *rate.Minimum)
	require.EqualValues(t, bpf.MaxSamplesPerSecond, *rate.Maximum)
	require.InEpsilon(t, bpf.MinOffCPUThreshold, *threshold.Minimum, 1e-9)
	require.EqualValues(t, 1, *threshold.Maximum)
	require.Equal(t, bpf.MinRingBufferBytes, minOffCPURingBytes)
	require.Equal(t, bpf.MaxRingBufferBytes, maxOffCPURingBytes)
	o := defaultConfig().options()
	require.GreaterOrEqual(t, o.Ring.UserShare, bpf.MinUserShare)
	require.Equal(t, record.MaxLabels, o.Labels.MaxLabels)
	require.Equal(t, record.MaxLabelKeyBytes, o.Labels.MaxKeyBytes)
	require.Equal(t, record.MaxLabelValueBytes, o.Labels.MaxValueBytes)
	require.Equal(t, record.MaxLabelKeyBytes, maxIDKeyBytes)
	require.Equal(t, record.MaxLabelKeyBytes, maxMetricLabelKeyBytes)
}
