//go:build linux && (amd64 || arm64)

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// share is a part of a whole. Of nothing it is none: no samples are no success.
func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func TestShare(t *testing.T) {
	require.Zero(t, share(0, 0))
	require.Equal(t, 0.75, share(3, 4))
	require.Zero(t, (&tally{}).share())
}
