package samplestore

import (
	"cmp"
	"slices"
	"strings"
)

// FunctionSum is the time of a function: itself, and with all that it calls. A function
// that is on a stack more than once counts once.
type FunctionSum struct {
	Frame       Frame
	Self, Total Sides
}

// functions fills in what a view says of functions, modules and types: one walk through
// the tree with what is on the way to the root.
func (t *tree) functions(v *View, search string) {
	modules, types := newTally(t.frames, func(f Frame) string { return f.Module }), newTally(t.frames, func(f Frame) string { return f.Type })
	found := make([]bool, len(t.frames))
	for i, f := range t.frames {
		found[i] = search != "" && strings.Contains(strings.ToLower(f.Name), search)
	}
	sums := make([]FunctionSum, len(t.frames))
	active := make([]int32, len(t.frames))
	foundAbove := 0
	t.walk(func(n *treeNode) {
		if active[n.frame] == 0 {
			sums[n.frame].Total.add(n.total)
		}
		sums[n.frame].Self.add(n.self)
		modules.enter(n)
		types.enter(n)
		if found[n.frame] {
			if foundAbove == 0 {
				v.Found.add(n.total)
			}
			foundAbove++
		}
		active[n.frame]++
	}, func(n *treeNode) {
		active[n.frame]--
		modules.leave(n)
		types.leave(n)
		if found[n.frame] {
			foundAbove--
		}
	})
	for i := range sums {
		sums[i].Frame = t.frames[i]
		if search == "" || found[i] {
			v.Functions = append(v.Functions, sums[i])
		}
	}
	v.Functions, v.MoreFuncs = top(v.Functions)
	v.Modules, v.Types = modules.facet(v.Ns.Sum()), types.facet(v.Ns.Sum())
}

// top keeps functions with much time of their own and functions with much time in all.
func top(all []FunctionSum) ([]FunctionSum, int) {
	by := func(of func(*FunctionSum) int64) {
		slices.SortFunc(all, func(a, b FunctionSum) int {
			return cmp.Or(cmp.Compare(of(&b), of(&a)), cmp.Compare(a.Frame.Name, b.Frame.Name), cmp.Compare(a.Frame.Module, b.Frame.Module))
		})
	}
	by(func(f *FunctionSum) int64 { return f.Self.Sum() })
	more := max(len(all)-MaxFunctions, 0)
	if more == 0 {
		return all, 0
	}
	kept := slices.Clone(all[:MaxFunctions/2])
	all = all[MaxFunctions/2:]
	by(func(f *FunctionSum) int64 { return f.Total.Sum() })
	return append(kept, all[:MaxFunctions/2]...), more
}

func (s *Sides) add(other Sides) {
	s[0] += other[0]
	s[1] += other[1]
}

// walk visits all nodes but the root, depth first.
func (t *tree) walk(enter, leave func(*treeNode)) {
	first, next := make([]int32, len(t.nodes)), make([]int32, len(t.nodes))
	for i := len(t.nodes) - 1; i > 0; i-- {
		p := t.nodes[i].parent
		first[p], next[i] = int32(i), first[p]
	}
	at := first[0]
	for at > 0 {
		enter(&t.nodes[at])
		if first[at] > 0 {
			at = first[at]
			continue
		}
		for at > 0 {
			leave(&t.nodes[at])
			if next[at] > 0 {
				at = next[at]
				break
			}
			at = t.nodes[at].parent
		}
	}
}

// tally adds up time by a property of frames, once for each stack that has it.
type tally struct {
	texts  []string
	of     []int32 // by frame
	active []int32
	ns     []int64
}

func newTally(frames []Frame, property func(Frame) string) *tally {
	t := &tally{of: make([]int32, len(frames))}
	index := map[string]int32{}
	for i, f := range frames {
		text := property(f)
		id, ok := index[text]
		if !ok {
			id = int32(len(t.texts))
			index[text] = id
			t.texts = append(t.texts, text)
		}
		t.of[i] = id
	}
	t.active, t.ns = make([]int32, len(t.texts)), make([]int64, len(t.texts))
	return t
}

func (t *tally) enter(n *treeNode) {
	id := t.of[n.frame]
	if t.active[id] == 0 {
		t.ns[id] += n.total.Sum()
	}
	t.active[id]++
}

func (t *tally) leave(n *treeNode) { t.active[t.of[n.frame]]-- }

func (t *tally) facet(all int64) Facet {
	sums := &facetSums{ns: all, values: map[string]int64{}}
	for i, text := range t.texts {
		sums.values[text] = t.ns[i]
	}
	return newFacet("", sums)
}
