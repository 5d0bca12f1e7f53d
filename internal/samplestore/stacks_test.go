package samplestore

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireChoices: values of a property are listed by what they would select besides.
func requireChoices(t *testing.T, all []made, q *Query, p Property, got *Facet) {
	t.Helper()
	others := *q
	others.Frames = slices.DeleteFunc(slices.Clone(q.Frames), func(f FrameFilter) bool { return f.Property == p })
	var total int64
	want := map[string]int64{}
	for i := range all {
		m := &all[i]
		if _, ok := m.selects(&others, ""); !ok {
			continue
		}
		total += m.ns
		seen := map[string]bool{}
		for _, f := range m.frames {
			value := map[Property]string{ByModule: f.Module, ByType: f.Type}[p]
			if !seen[value] {
				want[value] += m.ns
			}
			seen[value] = true
		}
	}
	sums := map[string]int64{}
	for _, v := range got.Values {
		sums[v.Text] = v.Ns
	}
	require.Equal(t, want, sums)
	require.Equal(t, total, got.Ns)
}
