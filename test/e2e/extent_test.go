//go:build linux && (amd64 || arm64)

package e2e

import "github.com/customlabels/otelcol-customlabels/internal/testutil"

// pick is how much a test does: less on an emulated machine, where a run of the sampling
// program takes 0.1 ms. What it asserts is the same.
func pick[T any](native, emulated T) T {
	if testutil.Emulated() {
		return emulated
	}
	return native
}
