package samplestore

import "slices"

// stretch is what a query selects in a part, or in one group of it: places of the trie that have
// time of their own, in their order.
type stretch struct {
	at     []uint32
	before []Sides // of a place: the time of those before it; the last one is the time of all
}

// newStretch makes one of the own times of all places.
func newStretch(sums []Sides) stretch {
	n := 0
	for i := range sums {
		if sums[i] != (Sides{}) {
			n++
		}
	}
	s := stretch{at: make([]uint32, 0, n), before: make([]Sides, 0, n+1)}
	var before Sides
	for i := range sums {
		if sums[i] != (Sides{}) {
			s.at, s.before = append(s.at, uint32(i)), append(s.before, before)
			before.add(sums[i])
		}
	}
	s.before = append(s.before, before)
	return s
}

// add adds time at a place, which is the last one or behind it.
func (s *stretch) add(at uint32, side int8, ns int64) {
	if ns == 0 {
		return
	}
	if n := len(s.at); n == 0 || s.at[n-1] != at {
		if n == 0 {
			s.before = append(s.before, Sides{})
		}
		s.at = append(s.at, at)
		s.before = append(s.before, s.before[n])
	}
	s.before[len(s.at)][side] += ns
}

// ns is the time of places from one on and up to another one, by their index.
func (s *stretch) ns(from, to int32) Sides {
	if from == to {
		return Sides{}
	}
	sum := s.before[to]
	sum.subtract(s.before[from])
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
	n := len(s.part.trie)
	sums := zeroed(&m.sums, n)
	s.groups, s.grown = groups, make([]stretch, max(len(groups), 1))
	if groups == nil {
		s.selected(func(r *row, side int8) { sums[r.at][side] += r.ns })
		s.grown[0] = newStretch(sums)
	} else {
		s.growGroups(m, groups)
	}
	s.sums = s.sumFrames(sums)
}

// growGroups goes through the rows by their places, so that those of each group are.
func (s *scan) growGroups(m *scratch, groups []Frame) {
	sums, first := m.sums, zeroed(&m.first, len(m.sums)+1)
	s.selected(func(r *row, side int8) {
		first[r.at+1]++
		sums[r.at][side] += r.ns
	})
	for i := 1; i < len(first); i++ {
		first[i] += first[i-1]
	}
	rows := zeroed(&m.rows, int(first[len(first)-1]))
	groupOf := s.classes(s.q.Group, groupValues(groups), m)
	s.selected(func(r *row, side int8) {
		group := groupOf[r.set]
		if group < 0 {
			group = int8(len(groups) - 1)
		}
		rows[first[r.at]] = grouped{r.ns, uint8(group), side}
		first[r.at]++
	})
	i := 0
	for at := range sums {
		for ; i < int(first[at]); i++ {
			s.grown[rows[i].group].add(uint32(at), rows[i].side, rows[i].ns)
		}
	}
}

// selected calls f with each row that is on a side.
func (s *scan) selected(f func(r *row, side int8)) {
	s.visit(func(r *row, failed, side int8, _ bool) {
		if failed == noFilter && side >= 0 {
			f(r, side)
		}
	})
}
