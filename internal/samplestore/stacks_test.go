package samplestore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireChoices: values of a property are listed by what they would select besides.
// TestChoicesOfNewGroups: modules and types keep their times when new samples change the groups, and what is kept of
// full segments is added up again.
func TestChoicesOfNewGroups(t *testing.T) {
	all := random(1000)
	s := New(1 << 30)
	fill(s, all)
	s.all[0].seal()
	s.all = append(s.all, newSegment(s.seed))
	q := &Query{Group: "key0", Frames: []FrameFilter{{ByModule, "module1"}, {ByType, "type0"}}}
	for i := range 3 {
		v := s.Query(q)
		requireChoices(t, all, q, ByModule, &v.Modules)
		requireChoices(t, all, q, ByType, &v.Types)
		more := random(10)
		for j := range more { // of a group that has most
			more[j].labels["key0"], more[j].ns = fmt.Sprint("new", i), 1_000_000*int64(i+1)
		}
		fill(s, more)
		all = append(all, more...)
	}
}

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
