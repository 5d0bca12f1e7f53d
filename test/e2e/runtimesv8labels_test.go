//go:build linux && amd64

package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

var v8LabelSamples = size(30_000, 2_000, 300) // of all versions

// TestRuntimesV8Labels: where a label of a thread context of Node.js names the function that
// runs, each sample's label is that of the function on its stack, with the garbage collector
// running, and in an asynchronous function that goes on.
func TestRuntimesV8Labels(t *testing.T) {
	releases := ends([]string{"22", "24", "26"})
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			node, err := filepath.Abs(filepath.Join(nodeBuild, "node_modules", "node"+release, "bin", "node"))
			require.NoError(t, err)
			script, err := filepath.Abs(filepath.Join(nodeBuild, "functions.js"))
			require.NoError(t, err)
			args := []string{script}
			if release == "22" {
				args = slices.Insert(args, 0, "--experimental-async-context-frame") // the default from 24 on
			}
			w := testutil.StartPath(t, node, args...)
			lowerPriority(t, w.PID)
			testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
				out := &functionLabels{pid: int64(w.PID), kind: frameV8, file: "functions.js"}
				r := startReceiver(t, out, atRate(chainRate), manySets)
				out.take(t, v8LabelSamples/len(releases))
				r.stop()
				require.Empty(t, out.odd)
				assert.Greater(bounds, float64(out.agree), minLabelled*float64(out.agree+out.unlabelled))
			})
		})
	}
}
