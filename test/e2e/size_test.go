//go:build linux && (amd64 || arm64)

package e2e

import "github.com/customlabels/otelcol-customlabels/internal/testutil"

// size is how much a test does: in make test-all, in make test, and on an emulated machine,
// where a run of the sampling program takes 0.1 ms. What it asserts is the same.
func size[T any](full, quick, emulated T) T { return testutil.Size(full, quick, emulated) }
