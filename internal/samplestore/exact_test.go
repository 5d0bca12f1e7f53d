package samplestore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// one is a sample of a tenant with one frame.
func one(tenant string, at *Location, ms int64) *Sample {
	return &Sample{
		Labels: []Label{{Key: "tenant", Value: tenant}}, Stack: []*Location{at},
		Points: []Point{{TimeNs: ms * 1e6, Hits: 1, Ns: 1}},
	}
}

func place(function string, line int64) *Location {
	return &Location{Lines: []Line{{Function: Function{Name: function}, Line: line}}}
}

// Whoever has the version of a status knows all that came in: each batch makes a new one.
func TestVersion(t *testing.T) {
	s := New(MinBytes)
	seen := map[uint64]bool{s.Status().Version: true}
	for range 3 {
		s.Batch(func(add func(*Sample)) { add(one("acme", place("run", 1), 1)) })
		version := s.Status().Version
		require.NotContains(t, seen, version)
		require.Equal(t, version, s.Query(&Query{}).Status.Version)
		seen[version] = true
	}
}

// Segments have numbers of their own for the places that a batch shares among them.
func TestBatchOverSegments(t *testing.T) {
	s := New(16 * MinBytes)
	places := make([]*Location, 7)
	for i := range places {
		places[i] = place(fmt.Sprint("function", i), 1)
	}
	want := map[string]int64{}
	s.Batch(func(add func(*Sample)) {
		for i := 0; len(s.all) < 4; i++ {
			// Not those of the first segment in their order there.
			at := places[(len(places)-1)*i*i%len(places)]
			add(one(fmt.Sprint("tenant", i), at, 1))
			want[at.Lines[0].Function.Name]++
		}
	})
	require.Zero(t, s.Status().Evicted)
	got := map[string]int64{}
	for _, f := range s.Query(&Query{}).Functions {
		got[f.Frame.Name] = f.Self[0]
	}
	require.Equal(t, want, got)
}

// Lines of a function are told apart, for profiles that show them.
func TestLines(t *testing.T) {
	s := New(MinBytes)
	s.Batch(func(add func(*Sample)) {
		add(one("acme", place("run", 12), 1))
		add(one("acme", place("run", 13), 1))
		add(one("acme", place("run", 13), 2))
	})
	hits := map[int64]int64{}
	s.Export(&Query{}, func(e *Entry) { hits[e.Stack[0].Lines[0].Line] += e.Hits })
	require.Equal(t, map[int64]int64{12: 1, 13: 2}, hits)
}

// A range has the time that it begins with, and not the one that it ends with.
func TestRange(t *testing.T) {
	s := New(MinBytes)
	s.Batch(func(add func(*Sample)) {
		for _, ms := range []int64{999, 1000, 1999, 2000, 2001} {
			add(one("acme", place("run", 1), ms))
		}
	})
	require.Equal(t, Sides{2, 0}, s.Query(&Query{FromMs: 1000, ToMs: 2000}).Hits)
	require.Equal(t, Sides{1, 0}, s.Query(&Query{FromMs: 2000, ToMs: 2001}).Hits)
}

// The series of the values with the most time are followed by one of all others.
// A sample without a stack is time of the root's own.
func TestNoStack(t *testing.T) {
	for name, q := range map[string]Query{"all": {}, "grouped": {Group: "tenant"}} {
		s := New(MinBytes)
		s.Batch(func(add func(*Sample)) {
			without := one("a", place("f", 0), 1)
			without.Stack = nil
			add(without)
			add(one("a", place("f", 0), 1))
		})
		v := s.Query(&q)
		require.Equal(t, Sides{2}, v.Ns, name)
		require.Equal(t, Sides{2}, v.Tree.Nodes[0].Total, name)
		require.Len(t, v.Functions, 1, name)
		require.Equal(t, Sides{1}, v.Functions[0].Self, name)
	}
}

// TestHidden counts what a tree leaves out: what is too small, and what is more than MaxNodes.
func TestHidden(t *testing.T) {
	s := New(64 << 20)
	s.Batch(func(add func(*Sample)) {
		for i := range 3 {
			deep := one("a", place("", 0), 1)
			deep.Points[0].Ns = 1e6
			deep.Stack = nil
			for j := range MaxFrames {
				deep.Stack = append(deep.Stack, place(fmt.Sprint("f", i, "-", j), 0))
			}
			add(deep)
		}
	})
	tree := s.Query(&Query{}).Tree
	require.Len(t, tree.Nodes, 1+MaxNodes)
	require.Equal(t, 3, tree.Hidden, "of each stack what comes next")

	s = New(MinBytes)
	s.Batch(func(add func(*Sample)) {
		large := one("a", place("large", 0), 1)
		large.Points[0].Ns = 1e6
		add(large)
		add(one("a", place("small", 0), 1))
		add(one("a", place("smaller", 0), 1))
	})
	tree = s.Query(&Query{}).Tree
	require.Len(t, tree.Nodes, 2)
	require.Equal(t, 2, tree.Hidden)
	require.Zero(t, tree.Nodes[0].Self, "what is too small is no time of its caller's own")
}

func TestSeriesOfOthers(t *testing.T) {
	s := New(MinBytes)
	const values = maxClasses + 3
	s.Batch(func(add func(*Sample)) {
		for i := range values {
			for range values - i {
				add(one(fmt.Sprintf("tenant%02d", i), place("run", 1), int64(i)))
			}
		}
	})
	all := s.Query(&Query{By: "tenant", Buckets: 100}).Series
	require.Len(t, all.Values, maxClasses+1)
	for i, v := range all.Values[:maxClasses] {
		require.False(t, v.Others)
		require.Equal(t, fmt.Sprintf("tenant%02d", i), v.Value.Text)
		require.EqualValues(t, values-i, v.Ns[i])
	}
	others := all.Values[maxClasses]
	require.True(t, others.Others)
	require.Equal(t, append(make([]int64, maxClasses), 3, 2, 1), others.Ns)
}

// What left for newer samples is counted, and no more left than had to.
func TestEvictedAreCounted(t *testing.T) {
	s := New(MinBytes)
	const sent = 20_000
	s.Batch(func(add func(*Sample)) {
		for i := range sent {
			add(one(fmt.Sprint("tenant", i), place("run", 1), int64(i)))
		}
	})
	status := s.Status()
	require.NotZero(t, status.Evicted)
	require.EqualValues(t, sent, status.Received)
	require.Equal(t, sent-status.Evicted, s.Query(&Query{}).Hits[0])
	require.EqualValues(t, sent-1, status.ToMs, "the latest are there")
	require.Equal(t, status.Evicted, status.FromMs, "all since the oldest of them are, too")
	require.Greater(t, status.Bytes, int64(MinBytes-2*MinBytes/segments))
}

// Keys that are asked for stand first, then those that cover the most time, whatever their names.
func TestOrderOfKeys(t *testing.T) {
	s := New(MinBytes)
	s.Batch(func(add func(*Sample)) {
		for i := range 2 * MaxFacets {
			sample := one("acme", place("run", 1), 1)
			sample.Labels = append(sample.Labels, Label{Key: fmt.Sprintf("flag%03d", i), Value: "on"})
			if i%2 == 0 {
				sample.Labels = append(sample.Labels, Label{Key: "zone", Value: "a"})
			}
			add(sample)
		}
	})
	v := s.Query(&Query{First: []string{"flag007", "none"}})
	require.Len(t, v.Facets, MaxFacets)
	require.Equal(t, MaxFacets+2, v.MoreKeys)
	keys := []string{v.Facets[0].Key, v.Facets[1].Key, v.Facets[2].Key, v.Facets[3].Key}
	require.Equal(t, []string{"flag007", "tenant", "zone", "flag000"}, keys)
	require.EqualValues(t, MaxFacets, v.Facets[2].Covered)
	require.EqualValues(t, 2*MaxFacets, v.Facets[2].Ns)
}

// A grouped tree has the values with the most time; a zoom into it, and its export, are of one
// group only, the one of all others included.
func TestGroups(t *testing.T) {
	s := New(MinBytes)
	const values = MaxGroups + 3
	s.Batch(func(add func(*Sample)) {
		for i := range values {
			for range values - i {
				add(one(fmt.Sprintf("tenant%02d", i), place("run", 1), 1))
			}
		}
		none := one("", place("run", 1), 1)
		none.Labels = nil
		none.Points[0].Ns = 1000
		add(none)
	})
	tree := s.Query(&Query{Group: "tenant"}).Tree
	groups := map[string]TreeNode{}
	for i, n := range tree.Nodes {
		if n.Parent == 0 {
			f := tree.Frames[n.Frame]
			groups[fmt.Sprint(f.Group, f.Name)] = tree.Nodes[i]
		}
	}
	require.Len(t, groups, MaxGroups+1)
	require.EqualValues(t, 1000, groups[fmt.Sprint(GroupNone)].Total[0])
	require.EqualValues(t, values, groups[fmt.Sprint(GroupValue, "tenant00")].Total[0])
	const others = 4 + 3 + 2 + 1 // one less than values over the bound, for the absence
	require.EqualValues(t, others, groups[fmt.Sprint(GroupOthers)].Total[0])
	for _, n := range groups {
		q := &Query{Group: "tenant", Zoom: n.ID}
		zoomed := s.Query(q).Tree
		require.Equal(t, n, withoutIndexes(zoomed.Nodes[zoomed.Zoom], n))
		require.Len(t, zoomed.Nodes, 3, "the root, the group and its function")
		var ns int64
		s.Export(q, func(e *Entry) { ns += e.Ns })
		require.Equal(t, n.Total[0], ns)
	}
}

// withoutIndexes makes a node comparable with one of another answer.
func withoutIndexes(n, like TreeNode) TreeNode {
	n.Parent, n.Frame = like.Parent, like.Frame
	return n
}
