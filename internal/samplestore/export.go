package samplestore

// Entry is the time of one stack with one label set.
type Entry struct {
	Labels   []Label
	Stack    []*Location // leaf first
	Hits, Ns int64
}

// Export calls visit with everything that a query selects: with its zoom only stacks
// through that node, with a comparison both sides. An entry is valid during the call. It
// returns the times that the samples span, 0, 0 if there are none.
func (s *Store) Export(q *Query, visit func(*Entry)) (fromMs, toMs int64) {
	parts, _ := s.snapshot()
	t := newTree()
	scans, nodes := make([]*scan, len(parts)), make([][]int32, len(parts))
	for i := range parts {
		scans[i] = newScan(&parts[i], q)
		scans[i].run()
		nodes[i] = t.merge(scans[i])
	}
	under := make([]bool, len(t.nodes))
	target := t.find(q.Zoom)
	under[target] = true
	for i := int(target) + 1; i < len(under); i++ {
		under[i] = under[t.nodes[i].parent]
	}
	for i, scan := range scans {
		from, to := scan.export(func(leaf uint32) bool { return under[nodes[i][leaf]] }, visit)
		if to != 0 && (fromMs == 0 || from < fromMs) {
			fromMs = from
		}
		toMs = max(toMs, to)
	}
	return fromMs, toMs
}

func (s *scan) export(wanted func(leaf uint32) bool, visit func(*Entry)) (fromMs, toMs int64) {
	type key struct{ leaf, set uint32 }
	type sum struct{ hits, ns int64 }
	sums := map[key]*sum{}
	var order []key
	s.visit(func(r *row, v verdict, inRange bool) {
		if !inRange || v.failed != noFilter || v.side < 0 || !wanted(r.leaf) {
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
	for _, k := range order {
		e = Entry{Labels: e.Labels[:0], Stack: e.Stack[:0], Hits: sums[k].hits, Ns: sums[k].ns}
		for _, p := range s.part.sets[k.set].pairs {
			e.Labels = append(e.Labels, Label{Key: s.part.strings[p.key], Value: s.part.strings[p.value], Number: p.number})
		}
		for at := k.leaf; at != 0; at = s.part.nodes[at].parent {
			e.Stack = append(e.Stack, s.part.locations[s.part.nodes[at].location])
		}
		visit(&e)
	}
	return fromMs, toMs
}
