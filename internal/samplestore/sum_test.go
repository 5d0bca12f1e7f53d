package samplestore

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// hugeNs is a time of which no two can be added up.
const hugeNs = math.MaxInt64/2 + 1

// long is a sample of a tenant with points of so much time, on a stack of two frames.
func long(tenant, function string, points ...int64) *Sample {
	s := one(tenant, place(function, 1), 1000)
	s.Stack = append(s.Stack, place("main", 1))
	s.Points = nil
	for i, ns := range points {
		s.Points = append(s.Points, Point{TimeNs: int64(1000+i) * 1e6, Hits: math.MaxInt64 / 2, Ns: ns})
	}
	return s
}

// Sums that cannot be told stay at the largest number, whatever is added up; others are exact.
func TestSumsDoNotWrap(t *testing.T) {
	s := New(MinBytes)
	s.Batch(func(add func(*Sample)) {
		add(long("acme", "read", hugeNs, 1, hugeNs, hugeNs))
		add(long("globex", "lock", hugeNs))
		add(long("acme", "lock", hugeNs, hugeNs))
		add(long("initech", "read", 7))
		for i := range maxClasses {
			add(long(fmt.Sprint("other", i), "read", hugeNs))
			add(long(fmt.Sprint("other", i), "read", hugeNs))
		}
	})
	require.EqualValues(t, math.MaxInt64, s.Status().Received)

	v := s.Query(&Query{By: "tenant", Buckets: 1})
	require.EqualValues(t, math.MaxInt64, v.Ns[0])
	require.EqualValues(t, math.MaxInt64, v.Series.Values[0].Ns[0])
	require.Equal(t, "acme", v.Series.Values[0].Value.Text)
	require.True(t, v.Series.Values[len(v.Series.Values)-1].Others)
	require.Positive(t, v.Series.Values[len(v.Series.Values)-1].Ns[0])
	require.EqualValues(t, math.MaxInt64, v.Facets[0].Ns)
	require.EqualValues(t, math.MaxInt64, v.Facets[0].Covered)
	require.Equal(t, FacetValue{Text: "acme", Ns: math.MaxInt64}, v.Facets[0].Values[0])
	require.EqualValues(t, math.MaxInt64, v.Modules.Values[0].Ns)
	require.EqualValues(t, math.MaxInt64, v.Types.Values[0].Ns)
	require.Len(t, v.Functions, 3)
	for _, f := range v.Functions {
		require.EqualValues(t, math.MaxInt64, f.Total[0], f.Frame.Name)
	}
	require.EqualValues(t, math.MaxInt64, v.Tree.Nodes[0].Total[0])
	for _, n := range v.Tree.Nodes {
		require.Positive(t, n.Total[0])
		require.GreaterOrEqual(t, n.Self[0], int64(0))
	}

	tenant := func(value string) Filter { return Filter{Key: "tenant", Values: []Value{text(value)}} }
	v = s.Query(&Query{By: "tenant", Buckets: 1, Filters: []Filter{tenant("initech")}})
	require.EqualValues(t, 7, v.Ns[0])
	require.EqualValues(t, 7, v.Functions[0].Total[0])
	require.EqualValues(t, math.MaxInt64, v.Facets[0].Ns, "with all other values")
	v = s.Query(&Query{Filters: []Filter{tenant("globex")}})
	require.EqualValues(t, int64(hugeNs), v.Ns[0])
	v = s.Query(&Query{Compare: &Compare{Key: "tenant", A: text("acme"), B: text("globex")}})
	require.Equal(t, Sides{math.MaxInt64, hugeNs}, v.Ns)
	require.EqualValues(t, math.MaxInt64, v.Ns.Sum())
	s.Export(&Query{}, func(e *Entry) { require.Positive(t, e.Ns) })
}

// A segment takes what can be added up, and the next one the rest, also of one sample.
func TestSegmentOfSums(t *testing.T) {
	s := New(MinBytes)
	s.Batch(func(add func(*Sample)) {
		add(long("acme", "read", hugeNs, hugeNs-2, 1))
		add(long("acme", "read", 1, hugeNs, 3))
	})
	require.Len(t, s.all, 2)
	require.EqualValues(t, math.MaxInt64, s.all[0].ns)
	require.EqualValues(t, int64(hugeNs)+4, s.all[1].ns)
	require.Zero(t, s.Status().Evicted)
}
