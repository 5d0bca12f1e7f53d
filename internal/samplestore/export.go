package samplestore

import "slices"

// Entry is the time of one stack with one label set.
type Entry struct {
	Labels   []Label
	Stack    []*Location // leaf first
	Hits, Ns int64
}

// Export calls visit with everything that a query selects: with its zoom only stacks
// through that node, none if it is not there, with a comparison both sides. An entry is valid during the call, its
// locations as long as they are used. It returns the times that the samples span, 0, 0 if there
// are none.
func (s *Store) Export(q *Query, visit func(*Entry)) (fromMs, toMs int64) {
	parts, _ := s.parts()
	m := s.takeScratch()
	defer s.scratches.Put(m)
	scans := s.scanned(parts, q, m)
	var way []Frame
	var groups []Frame
	if q.Zoom != 0 {
		tree := s.grown(scans, q, m)
		groups, way = tree.groups, tree.locate(q.Zoom)
		if way == nil && q.Zoom != rootID {
			return 0, 0
		}
		scans = tree.scans
	}
	for _, scan := range scans {
		from, to := scan.export(scan.under(way, groups, m), visit)
		if to != 0 && (fromMs == 0 || from < fromMs) {
			fromMs = from
		}
		toMs = max(toMs, to)
	}
	return fromMs, toMs
}

// under tells which rows have a stack that goes this way from the root; the first frame can be a
// group.
func (s *scan) under(way, groups []Frame, m *scratch) func(r *row) bool {
	var groupOf []int8
	wanted := 0
	if len(way) > 0 && way[0].Group != NoGroup {
		groupOf = s.classes(s.q.Group, groupValues(groups), m)
		wanted = slices.Index(groups, way[0])
		way = way[1:]
	}
	// How much of the way a node has gone, with nothing else in between; -1: another way.
	gone := make([]int, len(s.part.trie))
	for i := 1; i < len(gone); i++ {
		n := s.part.trie[i]
		switch at := gone[n.parent]; {
		case at == len(way):
			gone[i] = at
		case at >= 0 && s.part.frames[n.frame&frameBits] == way[at]:
			gone[i] = at + 1
		default:
			gone[i] = -1
		}
	}
	return func(r *row) bool {
		if groupOf != nil {
			group := int(groupOf[r.set])
			if group < 0 {
				group = len(groups) - 1
			}
			if group != wanted {
				return false
			}
		}
		return gone[r.at] == len(way)
	}
}

func (s *scan) export(wanted func(*row) bool, visit func(*Entry)) (fromMs, toMs int64) {
	type key struct{ leaf, set uint32 }
	type sum struct{ hits, ns int64 }
	sums := map[key]*sum{}
	var order []key
	s.selected(func(r *row, _ int8) {
		if !wanted(r) {
			return
		}
		at := r.timeMs
		if toMs == 0 || at < fromMs {
			fromMs = at
		}
		toMs = max(toMs, at)
		k := key{r.leaf, r.set}
		if sums[k] == nil {
			sums[k] = &sum{}
			order = append(order, k)
		}
		sums[k].hits += int64(r.hits)
		sums[k].ns += r.ns
	})
	var e Entry
	locations := map[uint32]*Location{}
	for _, k := range order {
		e = Entry{Labels: e.Labels[:0], Stack: e.Stack[:0], Hits: sums[k].hits, Ns: sums[k].ns}
		for at := k.set; at >= uint32(Kinds); at = s.part.sets[at].parent {
			p := s.part.pairs[s.part.sets[at].pair]
			e.Labels = append(e.Labels, Label{Key: s.part.strings[p.key], Value: s.part.strings[p.value], Number: p.number})
		}
		for at := k.leaf; at != 0; at = s.part.nodes[at].parent {
			id := s.part.nodes[at].location
			if locations[id] == nil {
				locations[id] = s.part.located(id)
			}
			e.Stack = append(e.Stack, locations[id])
		}
		visit(&e)
	}
	return fromMs, toMs
}

// located returns a location as it came.
func (c *part) located(id uint32) *Location {
	l := &c.locations[id]
	m := &c.mappings[l.mapping]
	made := &Location{
		Address: l.address, Type: c.strings[l.kind],
		Mapping: Mapping{m.start, m.limit, m.offset, c.strings[m.file], c.strings[m.buildID]},
	}
	for _, at := range c.lines[l.lines : l.lines+l.count] {
		f := &c.functions[at.function]
		made.Lines = append(made.Lines, Line{Function{c.strings[f.name], c.strings[f.file], f.startLine}, at.line})
	}
	return made
}
