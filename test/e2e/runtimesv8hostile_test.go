//go:build linux && amd64

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

var v8HostileSamples = size(20_000, 1_000, 300)

// TestRuntimesV8Hostile: beside a program that claims to be a V8 and has nonsense in its place, the
// stacks of a real one are what they are otherwise; the nonsense is counted.
func TestRuntimesV8Hostile(t *testing.T) {
	node := v8Node(t)
	program, args := compileHostileV8(t, node)
	hostile := testutil.StartPath(t, program, args...)
	lowerPriority(t, hostile.PID)
	n, r := sampleV8(t, node, v8HostileSamples)
	results := r.metric("runtime_results", "result")
	t.Logf("%v", results)
	require.Zero(t, n.wrong)
	require.GreaterOrEqual(t, float64(n.whole), v8MinWhole*float64(n.all-n.idle))
	require.Greater(t, results["stack_invalid"], int64(v8HostileSamples/10))
}
