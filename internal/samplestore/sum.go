package samplestore

import "math"

// AddNs adds up times or counts, of which none is negative, and stays at the largest number.
func AddNs(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
