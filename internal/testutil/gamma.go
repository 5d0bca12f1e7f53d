// SPDX-License-Identifier: Apache-2.0

package testutil

import "math"

const (
	gammaEpsilon  = 1e-15
	gammaTiny     = 1e-300 // instead of zero in a denominator
	gammaMaxTerms = 100000
)

// gammaTail is the regularized upper incomplete gamma function Q(a, x) for a, x > 0.
// The series converges fast below a + 1, the continued fraction above; the latter is
// not a difference from 1, so that small tails keep their precision.
func gammaTail(a, x float64) float64 {
	lgamma, _ := math.Lgamma(a)
	scale := math.Exp(a*math.Log(x) - x - lgamma)
	if x < a+1 {
		return 1 - scale*gammaSeries(a, x)
	}
	return scale * gammaFraction(a, x)
}

// gammaSeries is the sum of x^n / (a (a+1) ... (a+n)) over all n >= 0.
func gammaSeries(a, x float64) float64 {
	term := 1 / a
	sum := term
	for n := 1; n < gammaMaxTerms && term > sum*gammaEpsilon; n++ {
		term *= x / (a + float64(n))
		sum += term
	}
	return sum
}

// gammaFraction evaluates 1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- ...))) by Lentz's
// method.
func gammaFraction(a, x float64) float64 {
	b := x + 1 - a
	c := 1 / gammaTiny
	d := 1 / b
	h := d
	for n := 1; n < gammaMaxTerms; n++ {
		an := -float64(n) * (float64(n) - a)
		b += 2
		d = 1 / nonZero(an*d+b)
		c = nonZero(b + an/c)
		h *= d * c
		if math.Abs(d*c-1) < gammaEpsilon {
			break
		}
	}
	return h
}

func nonZero(x float64) float64 {
	if math.Abs(x) < gammaTiny {
		return gammaTiny
	}
	return x
}
