package paired

import (
	"math"
	"slices"
)

// confidence is the least probability with which an interval holds the median.
const confidence = 0.95

// An Interval is where the median of a population lies, by a sample of it.
type Interval struct {
	Median float64 `json:"median"` // of the sample
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Coverage is the probability with which such an interval holds the population's
	// median. 0: the sample is too small, and the interval is its whole range.
	Coverage float64 `json:"coverage"`
}

// Of returns the interval of the median of values, of which there is at least one.
//
// With n values, the median lies below the k-th smallest one only if fewer than k of
// them are below the median, whose number is binomial with a probability of one half:
// the interval from the k-th smallest to the k-th largest value misses it with
// probability 2 * P(Binomial(n, 1/2) < k). The largest k whose interval holds it with
// the confidence that is asked for gives the shortest one.
func Of(values []float64) Interval {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	i := Interval{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Low: sorted[0], High: sorted[n-1]}
	missed := 0.0
	for k := range n / 2 {
		missed += 2 * exactly(k, n)
		if 1-missed < confidence {
			break
		}
		i.Low, i.High, i.Coverage = sorted[k], sorted[n-1-k], 1-missed
	}
	return i
}

// exactly is the probability that k of n fair coins show heads.
func exactly(k, n int) float64 {
	log := func(x int) float64 {
		l, _ := math.Lgamma(float64(x) + 1)
		return l
	}
	return math.Exp(log(n) - log(k) - log(n-k) - float64(n)*math.Ln2)
}
