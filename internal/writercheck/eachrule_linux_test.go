//go:build linux && (amd64 || arm64)

package writercheck

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

// Kernels that name mappings of files in memory show whether a writer has named its own.
func TestNaming(t *testing.T) {
	const rule = "mapping-named"
	named, reason := (&watch{}).kernelNames()
	id, pid := ProcessContext.rule(rule), started(t, build{abi: 2}.writer(t), rule)
	if named {
		ids, _ := broken(t, pid)
		require.Equal(t, []string{id}, ids)
		return
	}
	ids, r := publishing(t, pid)
	require.Empty(t, ids)
	i := slices.IndexFunc(r.Results, func(x Result) bool { return x.ID == id })
	require.Equal(t, NotSeen, r.Results[i].Verdict, "%v", reason)
	require.Len(t, r.Results[i].Observed, 1, "it is said why")
}

// No program breaks this one: the set of v0 is the thread's own variable, whose memory it has as
// long as it runs.
func TestSetOfV0Unreadable(t *testing.T) {
	tally := newTally()
	readLabelSet(fakemem.Anywhere(nil), 8).judge(tally, V0)
	var broken []string
	for _, r := range tally.all([]Format{V0}) {
		if r.Verdict != NotSeen {
			require.Equal(t, Broken, r.Verdict)
			broken = append(broken, r.ID)
		}
	}
	require.Equal(t, []string{V0.rule(ruleSet)}, broken)
}

// Each rule has a writer that breaks it, or a test of its own.
func TestEachRuleHasAWriter(t *testing.T) {
	writers := map[string]bool{
		ProcessContext.rule("mapping-named"): true, // TestNaming
		V0.rule(ruleSet):                     true, // TestSetOfV0Unreadable
	}
	for _, of := range runningWriters() {
		for _, rule := range of.rules {
			writers[of.format.rule(rule)] = true
		}
	}
	for _, of := range builtWriters() {
		writers[of.format.rule(of.rule)] = true
	}
	for _, rule := range goRules() {
		writers[Go.rule(rule)] = true
	}
	var without []string
	for _, rule := range Rules() {
		if !writers[rule.ID] && rule.Format != NodeJS { // for Node.js: TestPublish
			without = append(without, rule.ID)
		}
	}
	require.Empty(t, without)
}

// Why nothing was read is not said by a source beside one that can be.
func TestInactive(t *testing.T) {
	lazily := labelsource.Status{State: labelsource.NotRelocated, Err: "bound lazily"}
	again := labelsource.Status{State: labelsource.Duplicate, Err: "the same as another"}
	require.Equal(t, "not_relocated: bound lazily", inactive([]labelsource.Status{lazily, again}))
	require.Empty(t, inactive([]labelsource.Status{again, {State: labelsource.Active}}))
	require.Empty(t, inactive(nil))
}
