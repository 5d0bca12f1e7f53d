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
		gather := func() time.Duration {
			gap := b.gather()
			time.Sleep(gap)
			b.read(true)
			return gap
		}
		require.Zero(t, gather())
		require.Equal(t, minGather, gather())
		time.Sleep(burstGap - time.Nanosecond)
		require.Equal(t, 2*minGather, gather())
		for range 5 {
			gather()
		}
		require.Equal(t, maxGather, gather())
		time.Sleep(burstGap)
		require.Zero(t, gather())
		require.Equal(t, minGather, gather())
	})
}

// While a burst lasts, its reader looks for more by itself, until there is nothing.
func TestBurstGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b burst
		require.Zero(t, b.gather())
		require.False(t, b.read(true), "it came alone")
		time.Sleep(b.gather())
		require.True(t, b.read(true))
		time.Sleep(b.gather())
		require.False(t, b.read(false))
	})
}
