//go:build linux && (amd64 || arm64)

package customlabelsreceiver

import (
	"fmt"
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
	o := defaultConfig().options()
	require.GreaterOrEqual(t, o.Ring.UserShare, bpf.MinUserShare)
	require.Equal(t, record.MaxLabelKeyBytes, maxIDKeyBytes)
	require.Equal(t, record.MaxLabelKeyBytes, maxMetricLabelKeyBytes)
}

// Bounds of bytes are those of the schema, and told in digits.
func TestConfigBytesAreTold(t *testing.T) {
	for key, want := range map[string]string{
		"max_memory_bytes":  "max_memory_bytes must be between 67108864 and 68719476736, not 1",
		"max_bpf_map_bytes": "max_bpf_map_bytes must be between 16777216 and 8589934592, not 1",
		"max_request_bytes": "max_request_bytes must be between 524288 and 1073741824, not 1",
	} {
		require.ErrorContains(t, tryKey(t, key, 1), want)
		of := readSchema(t).Properties[key]
		require.Contains(t, want, fmt.Sprintf("between %d and %d,", int64(*of.Minimum), int64(*of.Maximum)))
	}
}
