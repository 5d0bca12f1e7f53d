package trend

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

func TestOf(t *testing.T) {
	require.Equal(t, Slope{0, math.Inf(-1), math.Inf(1)}, Of(nil))
	require.Equal(t, Slope{1, math.Inf(-1), math.Inf(1)}, Of([]float64{1, 2, 3}))
	require.Equal(t, Slope{2, 2, 2}, Of([]float64{1, 3, 5, 7, 9, 11, 13, 15}))
	require.Equal(t, Slope{}, Of(make([]float64, 20)))
	s := Of([]float64{1, 2, 3, 4, 5, 600, 7, 8, 9, 10, 11, 12})
	require.InDelta(t, 1, s.Median, 1e-9, "one odd value")
	require.Positive(t, s.Low)
}

// TestFalseAlarms draws series without a trend, and such with one as large as the noise.
func TestFalseAlarms(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{12, 40, 110} {
		alarms, missed := 0, 0
		rounds := testutil.Size(4000, 1000, 1000)
		for range rounds {
			flat, growing := make([]float64, n), make([]float64, n)
			for i := range flat {
				flat[i] = math.Exp(random.NormFloat64()) // skewed, as memory is
				growing[i] = flat[i] + 20*float64(i)/float64(n)
			}
			if Of(flat).Low > 0 {
				alarms++
			}
			if Of(growing).Low <= 0 {
				missed++
			}
		}
		t.Logf("%d values: %d false alarms and %d of a trend missed in %d", n, alarms, missed, rounds)
		require.LessOrEqual(t, alarms, rounds/400)
		require.LessOrEqual(t, missed, rounds/50)
	}
}
