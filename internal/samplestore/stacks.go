package samplestore

import "slices"

// judgeStacks marks the nodes that end stacks which frame filters let pass: for each property that
// has some, one of them matches a frame on the way to the root.
func (s *scan) judgeStacks() {
	var on [properties]marks // by property; nil: no filter
	trie := s.part.trie
	for _, f := range s.q.Frames {
		if on[f.Property] == nil {
			on[f.Property] = make(marks, len(trie))
		}
		on := on[f.Property]
		for i := 1; i < len(on); i++ {
			on[i] = on[i] || on[trie[i].parent] || f.matches(s.part.frames[trie[i].frame&frameBits])
		}
	}
	s.pass = passing(on)
	for _, p := range listed {
		if on[p] != nil {
			others := on
			others[p] = nil
			s.but[p] = &butOne{pass: passing(others)}
		}
	}
}

// listed are the properties whose values are listed to choose from.
var listed = [...]Property{ByModule, ByType}

// butOne is what passes all filters but those on one property, so that other values of it can be
// chosen.
type butOne struct {
	pass marks
	ns   int64 // of all
}

// passing are the nodes that are marked for each property.
func passing(on [properties]marks) marks {
	var pass marks
	for _, m := range on {
		switch {
		case m == nil:
		case pass == nil:
			pass = slices.Clone(m)
		default:
			for i := range pass {
				pass[i] = pass[i] && m[i]
			}
		}
	}
	return pass
}

// sumChoices gives the frames of a part the times by which modules and types are listed, where a
// filter on these has them differ from those of what is selected.
func (s *scan) sumChoices(sums []frameSums) {
	trie := s.part.trie
	for _, p := range listed {
		if s.but[p] == nil {
			continue
		}
		but := &butOne{pass: s.but[p].pass} // others may be looking at that of before
		s.but[p] = but
		first := uint32(firstModule)
		of := func(f *frameSums) *int64 { return &f.moduleNs }
		if p == ByType {
			first = firstType
			of = func(f *frameSums) *int64 { return &f.typeNs }
		}
		for i := range sums {
			*of(&sums[i]) = 0
		}
		ns := make([]int64, len(trie))
		s.visit(but.pass, func(r *row, failed, side int8, _ bool) {
			if failed == noFilter && side >= 0 {
				ns[r.at] += r.ns
				but.ns += r.ns
			}
		})
		for i := len(ns) - 1; i > 0; i-- {
			if ns[i] == 0 {
				continue
			}
			n := trie[i]
			ns[n.parent] += ns[i]
			if n.frame&first != 0 {
				*of(&sums[n.frame&frameBits]) += ns[i]
			}
		}
	}
}
