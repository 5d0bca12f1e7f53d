package profile

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// Past the bound, samples lose their labels; past twice the bound, also their stacks.
// All of them stay, and those of an entry that is there already stay as they are.
func TestOverflow(t *testing.T) {
	const bound = 10
	opts := everything()
	opts.MaxEntries = bound
	b := NewBuilder(opts)
	add := func(set *labels.Set, stack uint64) {
		s := sample()
		s.Set, s.UserFrames, s.KernelFrames = set, []uint64{stack}, nil
		s.TID += uint32(stack) // where the stack is lost, the thread is, too
		if set == nil {
			s.Link = labels.Link{}
		}
		b.Add(&s)
	}
	distinct := func(i int) *labels.Set { return labels.NewSet(false, v1("n", fmt.Sprint(i))) }
	first := distinct(0)
	add(first, 1)
	for i := 1; i < 100; i++ {
		add(distinct(i), 1) // 10 with labels, 90 in one entry without
	}
	for i := range 100 {
		add(distinct(i), uint64(2+i)) // 9 with stacks, 91 without
	}
	add(nil, 1)   // no labels, none lost; the stack is
	add(first, 1) // still known
	require.Equal(t, 202, b.Samples())
	require.Equal(t, 2*bound+2, len(b.entries))

	p, stats := buildOne(b, &resolver{}, 1000, 2000)
	sets, stacks := b.Overflown()
	require.Equal(t, 90+9, sets)
	require.Equal(t, 91+1, stacks)
	require.EqualValues(t, 202, stats.Samples)
	times, labelled, overflown := 0, 0, 0
	for _, s := range flatten(t, p) {
		times += len(s.times)
		_, hasLabel := s.attrs["label.n"]
		_, hasThread := s.attrs["thread.id"]
		switch {
		case hasLabel:
			require.Equal(t, linkA, s.link)
			labelled += len(s.times)
		case s.attrs[attrOverflow] == true:
			require.True(t, s.link.IsZero())
			require.NotContains(t, s.attrs, attrTraceID)
			overflown += len(s.times)
		}
		require.Equal(t, hasThread, s.attrs[attrStackTruncated] == nil)
		require.Equal(t, hasThread, s.attrs[attrCPU] != nil)
	}
	require.Equal(t, 202, times)
	require.Equal(t, 11, labelled)
	require.Equal(t, 90+9+91, overflown)

	b.Reset()
	sets, stacks = b.Overflown()
	require.Zero(t, sets+stacks)
	add(distinct(7), 1)
	require.Contains(t, buildFlat(t, b)[0].attrs, "label.n", "a new batch begins anew")
}

// Builders of several users make one batch, in which a process that was several users'
// is one; alone, each has nothing of the other.
func TestBuildSeveral(t *testing.T) {
	a, b := NewBuilder(everything()), NewBuilder(everything())
	s := sample()
	a.Add(&s)
	s.Set, s.UserFrames = setB, []uint64{0x999}
	b.Add(&s)
	s.Process = 9
	b.Add(&s)

	all, stats := buildAll([]*Builder{a, b}, &resolver{}, 1000, 2000)
	require.Equal(t, 2, stats.Resources)
	require.EqualValues(t, 3, stats.Samples)
	require.Len(t, flatten(t, all), 3)
	alone, _ := buildAll([]*Builder{a}, &resolver{}, 1000, 2000)
	single := NewBuilder(everything())
	s = sample()
	single.Add(&s)
	want, _ := buildOne(single, &resolver{}, 1000, 2000)
	require.Equal(t, marshalWithoutID(t, want), marshalWithoutID(t, alone))
}
