package paired

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	upTo := func(n int) (values []float64) {
		for _, i := range rand.Perm(n) {
			values = append(values, float64(i+1))
		}
		return values
	}
	for _, c := range []struct {
		n    int
		want Interval
	}{
		{1, Interval{Median: 1, Low: 1, High: 1}},
		{2, Interval{Median: 1.5, Low: 1, High: 2}},
		{5, Interval{Median: 3, Low: 1, High: 5}},
		// The coverages are 1 - 2 * (sum of C(n, i) for i < k) / 2^n.
		{6, Interval{Median: 3.5, Low: 1, High: 6, Coverage: 1 - 2*1.0/64}},
		{8, Interval{Median: 4.5, Low: 1, High: 8, Coverage: 1 - 2*1.0/256}},
		{9, Interval{Median: 5, Low: 2, High: 8, Coverage: 1 - 2*10.0/512}},
		{10, Interval{Median: 5.5, Low: 2, High: 9, Coverage: 1 - 2*11.0/1024}},
		{20, Interval{Median: 10.5, Low: 6, High: 15, Coverage: 1 - 2*21700.0/1048576}},
	} {
		got := Of(upTo(c.n))
		assert.InDelta(t, c.want.Coverage, got.Coverage, 1e-12, "n = %d", c.n)
		got.Coverage = c.want.Coverage
		assert.Equal(t, c.want, got, "n = %d", c.n)
	}
}

// TestCoverage draws from a skewed distribution whose median is known.
func TestCoverage(t *testing.T) {
	const draws, n = 20_000, 10
	random := rand.New(rand.NewPCG(1, 2))
	held := 0
	for range draws {
		var values []float64
		for range n {
			u := random.Float64() // its median is 1/2
			values = append(values, u*u*u)
		}
		if i := Of(values); i.Low <= 0.125 && 0.125 <= i.High {
			held++
		}
	}
	// 5 standard deviations: the seed is set, so that this does not fail by chance.
	require.InDelta(t, 0.9785, float64(held)/draws, 0.005)
}
