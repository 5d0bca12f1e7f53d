//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What comes alone is read at once, what follows soon waits for more, the longer the burst.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b burst
		crowded := false
		gather := func() time.Duration {
			gap := b.gather()
			time.Sleep(gap)
			b.read(crowded)
			return gap
		}
		require.Zero(t, gather())
		require.Equal(t, minGather, gather())
		time.Sleep(burstGap - time.Nanosecond)
		require.Equal(t, 2*minGather, gather())
		for range 6 {
			gather()
		}
		require.Equal(t, maxGather, gather())
		crowded = true
		require.Equal(t, maxGather, gather())
		require.Equal(t, maxGather/2, gather())
		require.Equal(t, maxGather/4, gather())
		crowded = false
		require.Equal(t, maxGather/8, gather())
		require.Equal(t, maxGather/4, gather())
		time.Sleep(burstGap)
		require.Zero(t, gather())
		require.Equal(t, minGather, gather())
	})
}
