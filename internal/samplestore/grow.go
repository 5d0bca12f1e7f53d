package samplestore

import "slices"

// sideSums are times by place; those of the second side only where two are compared.
type sideSums [2][]int64

// stretch is what a query selects in a part, or in one group of it: places of the trie that have
// time of their own, in their order.
type stretch struct {
	at     []uint32
	before sideSums // by index of a place: the time of those before it; the last one is the time of all
}

// newStretch returns one without places.
func newStretch(sides, places int) stretch {
	s := stretch{at: make([]uint32, 0, places)}
	for side := range sides {
		s.before[side] = append(make([]int64, 0, places+1), 0)
	}
	return s
}

// fill adds the own times of all places.
func (s *stretch) fill(sums sideSums) {
	a, b := sums[0], sums[1]
	var ns Sides
	for i := range a {
		if a[i] == 0 && (len(b) == 0 || b[i] == 0) {
			continue
		}
		s.at = append(s.at, uint32(i))
		ns[0] += a[i]
		s.before[0] = append(s.before[0], ns[0])
		if len(b) > 0 {
			ns[1] += b[i]
			s.before[1] = append(s.before[1], ns[1])
		}
	}
}

// add adds time at a place, which is the last one or behind it.
func (s *stretch) add(at uint32, side int8, ns int64) {
	if ns == 0 {
		return
	}
	if n := len(s.at); n == 0 || s.at[n-1] != at {
		s.at = append(s.at, at)
		for i, before := range s.before {
			if before != nil {
				s.before[i] = append(before, before[n])
			}
		}
	}
	s.before[side][len(s.at)] += ns
}

// ns is the time of places from one on and up to another one, by their index.
func (s *stretch) ns(from, to int32) (sum Sides) {
	sum[0] = s.before[0][to] - s.before[0][from]
	if s.before[1] != nil {
		sum[1] = s.before[1][to] - s.before[1][from]
	}
	return sum
}

// search returns the index of the first place from one on and up to another one that is at or
// behind a number, near to where the first one is.
func (s *stretch) search(from, to int32, at uint32) int32 {
	step := int32(1)
	for from+step < to && s.at[from+step] < at {
		from += step
		step *= 2
	}
	high := min(from+step, to)
	i, _ := slices.BinarySearch(s.at[from:high], at)
	return from + int32(i)
}

// groupsOf returns the frames of the first level of a grouped tree: the values with the most
// time, and all others.
func groupsOf(scans []*scan, q *Query) []Frame {
	if q.Group == "" {
		return nil
	}
	var frames []Frame
	for _, v := range topValues(scans, q.Group, MaxGroups, func(s *scan) pairSums { return s.held }) {
		f := Frame{Name: v.Text, Group: GroupValue}
		if !v.Present {
			f.Group = GroupNone
		}
		frames = append(frames, f)
	}
	return append(frames, Frame{Group: GroupOthers})
}

// groupValues are the values of groups, but for the others.
func groupValues(groups []Frame) (values []Value) {
	for _, f := range groups {
		if f.Group != GroupOthers {
			values = append(values, Value{Text: f.Name, Present: f.Group == GroupValue})
		}
	}
	return values
}

// grow adds up what was selected, by place, in each group if there are any, and by frame.
func (s *scan) grow(m *scratch, groups []Frame) {
	var sums sideSums
	for side := range s.sides() {
		sums[side] = zeroed(&m.sums[side], len(s.part.trie))
	}
	s.groups, s.grown = groups, make([]stretch, max(len(groups), 1))
	if groups == nil {
		places := 0
		s.selected(func(r *row, side int8) {
			if sum := &sums[side][r.at]; *sum == 0 {
				places++
				*sum = r.ns
			} else {
				*sum += r.ns
			}
		})
		s.grown[0] = newStretch(s.sides(), places)
		s.grown[0].fill(sums)
	} else {
		s.growGroups(m, groups, sums)
	}
	s.sums = s.sumFrames(sums)
	s.sumChoices(s.sums)
}

// sides is how many sides a query has.
func (s *scan) sides() int {
	if s.q.Compare != nil {
		return 2
	}
	return 1
}

// growGroups goes through the rows by their places, so that those of each group are.
func (s *scan) growGroups(m *scratch, groups []Frame, sums sideSums) {
	first := zeroed(&m.first, len(sums[0])+1)
	s.selected(func(r *row, _ int8) { first[r.at+1]++ })
	for i := 1; i < len(first); i++ {
		first[i] += first[i-1]
	}
	rows := zeroed(&m.rows, int(first[len(first)-1]))
	sizes := make([]int, len(groups)) // no fewer than its places
	groupOf := s.classes(s.q.Group, groupValues(groups), m)
	s.selected(func(r *row, side int8) {
		group := groupOf[r.set]
		if group < 0 {
			group = int8(len(groups) - 1)
		}
		rows[first[r.at]] = grouped{r.ns, uint8(group), side}
		first[r.at]++
		sizes[group]++
	})
	for g := range s.grown {
		s.grown[g] = newStretch(s.sides(), sizes[g])
	}
	i := 0
	for at := range sums[0] {
		for ; i < int(first[at]); i++ {
			r := &rows[i]
			s.grown[r.group].add(uint32(at), r.side, r.ns)
			sums[r.side][at] += r.ns
		}
	}
}

// selected calls f with each row that is on a side.
func (s *scan) selected(f func(r *row, side int8)) {
	s.visit(s.pass, func(r *row, failed, side int8, _ bool) {
		if failed == noFilter && side >= 0 {
			f(r, side)
		}
	})
}
