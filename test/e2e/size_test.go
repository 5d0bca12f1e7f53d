//go:build linux && (amd64 || arm64)

package e2e

import "github.com/customlabels/otelcol-customlabels/internal/testutil"

// size is how much a test does: in make test-all, in make test, and on an emulated machine,
// where a run of the sampling program takes 0.1 ms. What it asserts is the same.
func size[T any](full, quick, emulated T) T { return testutil.Size(full, quick, emulated) }

// ends are all versions of something, or in quick forms the first and the last of them.
func ends(versions []string) []string {
	if testutil.Full() || len(versions) < 3 {
		return versions
	}
	return []string{versions[0], versions[len(versions)-1]}
}
