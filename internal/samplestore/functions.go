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

// functions fills in what a view says of functions, modules and types.
func (m *merge) functions(v *View, search string) {
	modules, types := m.choices(v, ByModule), m.choices(v, ByType)
	var sums []frameSums // by frame of the merge
	matching := m.matching(search)
	for part, s := range m.scans {
		if search != "" {
			v.Found.add(m.found(part, matching))
		}
		for i := range s.sums {
			f, frame := &s.sums[i], &s.part.frames[i]
			if f.moduleNs > 0 {
				modules.values[frame.Module] = AddNs(modules.values[frame.Module], f.moduleNs)
			}
			if f.typeNs > 0 {
				types.values[frame.Type] = AddNs(types.values[frame.Type], f.typeNs)
			}
			if f.total.Sum() > 0 {
				id := int(m.local(part, uint32(i)))
				if n := len(m.frames); n > len(sums) {
					sums = append(sums, make([]frameSums, n-len(sums))...)
				}
				sums[id].self.add(f.self)
				sums[id].total.add(f.total)
			}
		}
	}
	for id := range sums {
		if f := &sums[id]; f.total.Sum() > 0 && matching(int32(id)) {
			v.Functions = append(v.Functions, FunctionSum{Frame: m.frames[id], Self: f.self, Total: f.total})
		}
	}
	v.Functions, v.MoreFuncs = top(v.Functions)
	v.Modules, v.Types = newFacet(modules), newFacet(types)
}

// choices are the values of a property, none yet, with the time that their shares are of.
func (m *merge) choices(v *View, p Property) *facetSums {
	sums := &facetSums{ns: v.Ns.Sum(), values: map[string]int64{}}
	for i, s := range m.scans {
		if s.but[p] == nil {
			break // nor has any other
		}
		if i == 0 {
			sums.ns = 0
		}
		sums.ns = AddNs(sums.ns, s.but[p].ns)
	}
	return sums
}

// matching tells by their number here which frames have a text in their name. It looks at each
// once.
func (m *merge) matching(search string) func(frame int32) bool {
	const no, yes = 1, 2
	var known []uint8
	return func(frame int32) bool {
		if search == "" {
			return true
		}
		if n := len(m.frames) - len(known); n > 0 {
			known = append(known, make([]uint8, n)...)
		}
		if known[frame] == 0 {
			known[frame] = no
			if strings.Contains(strings.ToLower(m.frames[frame].Name), search) {
				known[frame] = yes
			}
		}
		return known[frame] == yes
	}
}

// frameSums are the times of a frame; modules and types have theirs where they are first.
type frameSums struct {
	self, total      Sides
	moduleNs, typeNs int64
}

// sumFrames adds up the time of each frame of a part, by the own times of places, which become
// those with all that is below.
func (s *scan) sumFrames(own sideSums) []frameSums {
	sums := make([]frameSums, len(s.part.frames))
	trie := s.part.trie
	for g := range s.grown {
		for i, at := range s.grown[g].at {
			if at == 0 {
				continue // without a stack
			}
			sums[trie[at].frame&frameBits].self.add(s.grown[g].ns(int32(i), int32(i)+1))
		}
	}
	for side, ns := range own {
		for i := len(ns) - 1; i > 0; i-- {
			sum := ns[i]
			if sum == 0 {
				continue
			}
			n := trie[i]
			ns[n.parent] += sum
			of := &sums[n.frame&frameBits]
			if n.frame&firstFunction != 0 {
				of.total[side] += sum
			}
			if n.frame&firstModule != 0 {
				of.moduleNs += sum
			}
			if n.frame&firstType != 0 {
				of.typeNs += sum
			}
		}
	}
	return sums
}

// found is the time of a part's stacks with a frame that matches.
func (m *merge) found(part int, matching func(frame int32) bool) (found Sides) {
	s := m.scans[part]
	matched := make([]bool, len(s.part.frames))
	for i := range matched {
		matched[i] = matching(m.local(part, uint32(i)))
	}
	above := make([]bool, len(s.part.trie)) // a match is on the way to this place, or at it
	for i := 1; i < len(above); i++ {
		n := s.part.trie[i]
		above[i] = above[n.parent] || matched[n.frame&frameBits]
	}
	for g := range s.grown {
		for i, at := range s.grown[g].at {
			if above[at] {
				found.add(s.grown[g].ns(int32(i), int32(i)+1))
			}
		}
	}
	return found
}

// top keeps functions with much time of their own and functions with much time in all.
func top(all []FunctionSum) ([]FunctionSum, int) {
	by := func(of func(*FunctionSum) int64) func(a, b FunctionSum) int {
		return func(a, b FunctionSum) int {
			if c := cmp.Compare(of(&b), of(&a)); c != 0 {
				return c
			}
			return cmp.Or(cmp.Compare(a.Frame.Name, b.Frame.Name), cmp.Compare(a.Frame.Module, b.Frame.Module), cmp.Compare(a.Frame.Type, b.Frame.Type))
		}
	}
	self := by(func(f *FunctionSum) int64 { return f.Self.Sum() })
	if len(all) <= MaxFunctions {
		return largest(all, MaxFunctions, self), 0
	}
	kept := slices.Clone(largest(all, MaxFunctions/2, self))
	rest := largest(all[MaxFunctions/2:], MaxFunctions/2, by(func(f *FunctionSum) int64 { return f.Total.Sum() }))
	return append(kept, rest...), len(all) - MaxFunctions
}
