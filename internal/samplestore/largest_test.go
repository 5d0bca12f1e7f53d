package samplestore

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLargest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		all := make([]int, r.IntN(200))
		for i := range all {
			all[i] = r.IntN(100)
		}
		want := slices.Sorted(slices.Values(all))
		n := 1 + r.IntN(40)
		got := largest(all, n, cmp.Compare[int])
		require.True(t, slices.Equal(want[:min(n, len(want))], got))
		require.ElementsMatch(t, want, slices.Sorted(slices.Values(all)), "none is lost")
	}
}
