//go:build linux && (amd64 || arm64)

package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// What a registry counts is told by user, budget and rule; users beyond the cap share a series.
func TestLabelsSnapshot(t *testing.T) {
	o := Defaults().Labels
	o.Budgets.Users, o.Budgets.Sets = 2, 1
	o.Rules = []labels.Rule{{Key: "a", Action: labels.Drop}, {Key: "b", Action: labels.Keep}}
	registry, err := labels.NewRegistry(labels.Options{Rules: o.Rules, Budgets: o.Budgets})
	require.NoError(t, err)
	channel := registry.NewChannel()
	add := func(uid uint32, container, key, value string) {
		registry.Count(channel.Decode(labels.Origin{User: labels.User{UID: uid, Container: container}}, nil, oneLabel(key, value)))
	}
	for range 2 {
		add(7, "", "a", "1")
		add(7, "", "b", "1")
	}
	add(7, "", "b", "2")
	add(7, "c", "b", "2")
	add(7, "c", "b", "\xff")
	add(7, "c", "b", "\xff")
	add(8, "", "b", "1")
	add(9, "", "b", "2")
	channel.EndInterval(0)

	var users userSeries
	var s LabelsSnapshot
	s.readRegistry(registry, &users, &o)
	const seven = 0
	require.Equal(t, []uint32{7}, users.users())
	require.Equal(t, ByUser{seven: 3, OtherUsers: 1}, s.Overflow[labels.BudgetSets])
	require.Equal(t, []int64{2, 8}, s.RuleMatches)
	require.Equal(t, ByUser{seven: 2}, s.TypeConflicts[TypeConflictStringified])
	require.EqualValues(t, 2, s.OthersSamples)
	require.EqualValues(t, 1, s.BudgetUsed[labels.BudgetSets][seven])
	require.Equal(t, 1/float64(o.Budgets.Keys), s.BudgetUsed[labels.BudgetKeys][seven], "not both containers' together")
	require.InDelta(t, 0.5, s.BudgetUsed[labels.BudgetBytes][seven], 0.5, "a part")

	// Of users who share a series, the one with most is shown.
	var full userSeries
	for uid := range uint32(maxUserSeries) {
		full.of(1000 + uid)
	}
	s = LabelsSnapshot{}
	s.readRegistry(registry, &full, &o)
	require.EqualValues(t, 1, s.BudgetUsed[labels.BudgetSets][OtherUsers])
}
