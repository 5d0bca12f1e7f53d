package trend

import (
	"math"
	"slices"
)

// deviations is how many standard deviations of the normal distribution an interval has
// on either side: one in 1,000 series without a trend has a low end above 0.
const deviations = 3.09

// A Slope is what a series grows by from one value to the next.
type Slope struct {
	Median, Low, High float64
}

// Of returns the slope of a series. Of fewer than five values, the interval holds all slopes
// that there can be.
func Of(values []float64) Slope {
	n := len(values)
	var slopes []float64
	for i := range values {
		for j := range i {
			slopes = append(slopes, (values[i]-values[j])/float64(i-j))
		}
	}
	if len(slopes) == 0 {
		return Slope{Low: math.Inf(-1), High: math.Inf(1)}
	}
	slices.Sort(slopes)
	pairs := len(slopes)
	s := Slope{Median: (slopes[(pairs-1)/2] + slopes[pairs/2]) / 2, Low: math.Inf(-1), High: math.Inf(1)}
	wide := deviations * math.Sqrt(float64(n*(n-1)*(2*n+5))/18)
	if below := int(math.Floor((float64(pairs) - wide) / 2)); below >= 0 && n >= 5 {
		s.Low, s.High = slopes[below], slopes[pairs-1-below]
	}
	return s
}
