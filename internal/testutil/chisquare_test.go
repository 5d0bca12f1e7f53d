// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChiSquareTail(t *testing.T) {
	// Closed forms: df 1: erfc(sqrt(x/2)); df 2: exp(-x/2); df 4: exp(-x/2)(1+x/2).
	for _, x := range []float64{1e-9, 0.1, 0.5, 1, 2, 3, 5, 10, 25, 60, 200, 700} {
		require.InEpsilon(t, math.Erfc(math.Sqrt(x/2)), ChiSquareTail(x, 1), 1e-10, "df 1, x %v", x)
		require.InEpsilon(t, math.Exp(-x/2), ChiSquareTail(x, 2), 1e-10, "df 2, x %v", x)
		require.InEpsilon(t, math.Exp(-x/2)*(1+x/2), ChiSquareTail(x, 4), 1e-10, "df 4, x %v", x)
	}
	// Upper-tail critical values as printed in statistical tables.
	tests := []struct {
		df   int
		x, p float64
	}{
		{1, 3.841, 0.05}, {1, 10.828, 0.001}, {2, 5.991, 0.05}, {3, 7.815, 0.05}, {3, 16.266, 0.001},
		{5, 11.070, 0.05}, {10, 18.307, 0.05}, {10, 29.588, 0.001}, {30, 43.773, 0.05}, {100, 124.342, 0.05},
		{100, 149.449, 0.001},
	}
	for _, tt := range tests {
		require.InEpsilon(t, tt.p, ChiSquareTail(tt.x, tt.df), 1e-3, "df %d, x %v", tt.df, tt.x)
	}
	require.Equal(t, 1.0, ChiSquareTail(0, 3))
	require.Equal(t, 0.0, ChiSquareTail(1, 0))
	require.True(t, math.IsNaN(ChiSquareTail(math.NaN(), 1)))
	require.Zero(t, ChiSquareTail(math.Inf(1), 3))
}

func TestChiSquareTailFallsEverywhere(t *testing.T) {
	for _, df := range []int{1, 2, 3, 7, 50, 301} {
		last := 1.0
		for x := 0.25; x < 3*float64(df)+50; x += 0.25 {
			p := ChiSquareTail(x, df)
			require.Less(t, p, last+1e-15, "df %d, x %v", df, x)
			last = p
		}
	}
}

func TestChiSquare(t *testing.T) {
	// Mendel's peas: 315, 108, 101, 32 for 9:3:3:1 give 0.470 on 3 degrees of freedom.
	fit, err := ChiSquare([]uint64{315, 108, 101, 32}, []float64{9, 3, 3, 1})
	require.NoError(t, err)
	require.InDelta(t, 0.4700, fit.Statistic, 1e-4)
	require.Equal(t, 3, fit.DegreesOfFreedom)
	require.InDelta(t, 0.9254, fit.P, 1e-4)

	fit, err = ChiSquare([]uint64{10, 0, 20}, []float64{1, 0, 2})
	require.NoError(t, err)
	require.Equal(t, Fit{DegreesOfFreedom: 1, P: 1}, fit)

	fit, err = ChiSquare([]uint64{10, 1, 20}, []float64{1, 0, 2})
	require.NoError(t, err)
	require.Zero(t, fit.P, "a count where none can be")

	fit, err = ChiSquare([]uint64{500, 500}, []float64{0.3, 0.7})
	require.NoError(t, err)
	require.Less(t, fit.P, 1e-40, "a share that is merged into another")
}

func TestChiSquareRefuses(t *testing.T) {
	for _, shares := range [][]float64{{1}, {0, 0}, {-1, 2}, {math.NaN(), 1}, {math.Inf(1), 1}} {
		_, err := ChiSquare([]uint64{1, 2}, shares)
		require.Error(t, err, "%v", shares)
	}
}

func TestBonferroni(t *testing.T) {
	require.InDelta(t, 1e-6, Bonferroni(1e-4, 100), 1e-18)
	require.Equal(t, 1e-4, Bonferroni(1e-4, 0))
}

func TestPoissonTail(t *testing.T) {
	for _, tt := range []struct {
		n    int
		mean float64
		p    float64
	}{
		{0, 1, 1},
		{1, 0.778, 1 - math.Exp(-0.778)},
		{2, 0.778, 1 - math.Exp(-0.778)*(1+0.778)},
		{3, 2, 1 - math.Exp(-2)*(1+2+2)},
		{40, 20, 5.32e-5},
	} {
		require.InEpsilon(t, tt.p, PoissonTail(tt.n, tt.mean), 0.02, "%d of %v", tt.n, tt.mean)
	}
}
