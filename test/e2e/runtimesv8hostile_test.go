//go:build linux && amd64

package e2e

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

var v8HostileSamples = size(20_000, 1_000, 300)

// TestRuntimesV8Hostile: beside a program that claims to be a V8 and has nonsense in its place, the
// stacks of a real one are what they are otherwise; the nonsense is counted. So are stacks for
// whose code too much memory would be gone through.
func TestRuntimesV8Hostile(t *testing.T) {
	t.Run("nonsense", testV8Nonsense)
	t.Run("code that is not found", testV8Lost)
}

func testV8Lost(t *testing.T) {
	program, args := compileHostileV8(t, v8Node(t), "lostv8.c")
	lost := testutil.StartPath(t, program, args...)
	lowerPriority(t, lost.PID)
	out := &chainSink{t: t, warm: func(of *chainStack) bool {
		return !of.cut && slices.ContainsFunc(of.frames, func(f chainFrame) bool { return f.kind == frameV8 })
	}}
	out.follow(int64(lost.PID))
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		atRate(chainRate)(c)
		c.Targets.Include = []customlabelsreceiver.TargetSelector{{PID: lost.PID}}
	}, manySets)
	out.take(int64(lost.PID), 100)
	results := r.metric("runtime_results", "result")
	t.Logf("%v", results)
	require.GreaterOrEqual(t, results["stack_cut"], int64(100))
	require.Less(t, results["stack_whole"], int64(10))
}

func testV8Nonsense(t *testing.T) { testutil.Measure(t, measureV8Nonsense) }

func measureV8Nonsense(t *testing.T, bounds *testutil.Bounds) {
	node := v8Node(t)
	program, args := compileHostileV8(t, node, "hostilev8.c")
	hostile := testutil.StartPath(t, program, args...)
	lowerPriority(t, hostile.PID)
	n, r := sampleV8(t, node, v8HostileSamples)
	results := r.metric("runtime_results", "result")
	t.Logf("%v", results)
	require.Zero(t, n.wrong)
	assertShare(bounds, n.whole, n.all-n.idle, v8MinWhole, "samples with the whole chain")
	require.Greater(t, results["stack_invalid"], int64(v8HostileSamples/10))
}
