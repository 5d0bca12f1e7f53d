// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"fmt"
	"math"
)

// Fit is how well counts agree with expected shares: Pearson's chi-square.
type Fit struct {
	Statistic        float64
	DegreesOfFreedom int
	// P is the probability that counts drawn by the shares differ from them at
	// least as much. As with every chi-square, it is sound from about five expected
	// counts a category on.
	P float64
}

// ChiSquare compares counts with the shares they should have. The shares are taken
// relative to their sum. A count where the share is zero is impossible: P is 0.
func ChiSquare(observed []uint64, shares []float64) (Fit, error) {
	if len(observed) != len(shares) {
		return Fit{}, fmt.Errorf("%d counts, %d shares", len(observed), len(shares))
	}
	var total, sum float64
	for i, share := range shares {
		if !(share >= 0) || math.IsInf(share, 1) {
			return Fit{}, fmt.Errorf("share %d is %v", i, share)
		}
		sum += share
		total += float64(observed[i])
	}
	if sum == 0 {
		return Fit{}, fmt.Errorf("no expected share is above zero")
	}
	fit := Fit{DegreesOfFreedom: -1}
	impossible := false
	for i, share := range shares {
		if share == 0 {
			impossible = impossible || observed[i] > 0
			continue
		}
		fit.DegreesOfFreedom++
		if want := total * share / sum; want > 0 {
			fit.Statistic += (float64(observed[i]) - want) * (float64(observed[i]) - want) / want
		}
	}
	fit.P = ChiSquareTail(fit.Statistic, fit.DegreesOfFreedom)
	if impossible {
		fit.P = 0
	}
	return fit, nil
}

// ChiSquareTail is the probability that a chi-square variable with so many degrees
// of freedom is at least x. With none it is always 0.
func ChiSquareTail(x float64, degreesOfFreedom int) float64 {
	switch {
	case math.IsNaN(x):
		return math.NaN()
	case x <= 0:
		return 1
	case degreesOfFreedom <= 0, math.IsInf(x, 1):
		return 0
	}
	return gammaTail(float64(degreesOfFreedom)/2, x/2)
}

// Bonferroni is the significance level of each of so many checks that keeps the
// chance of at least one false alarm among them below alpha.
func Bonferroni(alpha float64, checks int) float64 {
	return alpha / float64(max(checks, 1))
}

// PoissonTail is the probability that a Poisson variable of a mean above zero is at least n:
// of many samples that each are bad by a small chance, so many or more.
func PoissonTail(n int, mean float64) float64 {
	if n <= 0 {
		return 1
	}
	return 1 - gammaTail(float64(n), mean)
}
