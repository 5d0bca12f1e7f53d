//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadDelay(t *testing.T) {
	for hz, want := range map[int]time.Duration{
		MinSamplesPerSecond: 200 * time.Millisecond,
		19:                  200 * time.Millisecond,
		25:                  160 * time.Millisecond,
		97:                  100 * time.Millisecond,
		MaxSamplesPerSecond: 100 * time.Millisecond,
	} {
		require.Equal(t, want, (&Config{SamplesPerSecond: hz}).readDelay(), hz)
		require.Equal(t, time.Second, (&Config{SamplesPerSecond: hz, ReadDelay: time.Second}).readDelay())
	}
}
