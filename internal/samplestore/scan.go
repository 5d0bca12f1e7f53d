package samplestore

import (
	"math"
	"math/bits"
	"slices"
)

// What a verdict has in place of a filter that does not hold.
const (
	noFilter  = -1 // all hold
	tooMany   = -2 // more than one does not hold
	otherKind = -3 // of another kind of sample
)

// verdict is what a query says of a label set.
type verdict struct {
	failed int8 // the one filter that does not hold
	side   int8 // of a comparison, -1: on none
}

// marks are some of the entries of a table; none: all of them.
type marks []bool

func (m marks) has(i uint32) bool { return len(m) == 0 || m[i] }

// scan is a query on one part.
type scan struct {
	part     *part
	q        *Query
	filters  []Filter
	verdicts []verdict // by set
	pass     marks     // by trie node: a stack that ends here passes the frame filters
	fromMs   int64     // inclusive
	toMs     int64     // exclusive

	all      pairSums  // where all filters hold, at any time
	held     pairSums  // likewise in the range of time; of no side, too
	failedNs [][]int64 // by filter: where only this one does not hold, by set; nil: none
	hits, ns Sides

	groups []Frame     // of the first level of the tree, if there is one
	grown  []stretch   // the stacks that were selected, by group; nil: not grown yet
	sums   []frameSums // by frame
}

func newScan(part *part, q *Query) *scan {
	s := &scan{part: part, q: q, filters: q.Filters[:min(len(q.Filters), MaxFilters)], fromMs: math.MinInt64, toMs: math.MaxInt64}
	if q.ToMs != 0 {
		s.fromMs, s.toMs = q.FromMs, q.ToMs
	}
	s.judgeSets()
	s.judgeStacks()
	return s
}

// compiled is a label to be compared by number.
type compiled struct {
	key    uint32
	known  bool     // the part has the key
	absent bool     // a set without the key holds
	values []uint32 // a set with one of these holds
}

// compile looks the texts of filters up for a part.
func compile(part *part, filters []Filter) []compiled {
	if len(filters) == 0 {
		return nil
	}
	var wanted []string
	for _, f := range filters {
		wanted = append(wanted, f.Key)
		for _, v := range f.Values {
			wanted = append(wanted, v.Text)
		}
	}
	known := ids(part.strings, wanted)
	all := make([]compiled, len(filters))
	for i, f := range filters {
		all[i].key, all[i].known = known[f.Key], false
		_, all[i].known = known[f.Key]
		for _, v := range f.Values {
			if !v.Present {
				all[i].absent = true
			} else if id, ok := known[v.Text]; ok {
				all[i].values = append(all[i].values, id)
			}
		}
	}
	return all
}

// ids returns the numbers of texts in a part; those that are not there are left out.
func ids(texts []string, wanted []string) map[string]uint32 {
	found := map[string]uint32{}
	for i, text := range texts {
		if slices.Contains(wanted, text) {
			found[text] = uint32(i)
			if len(found) == len(wanted) {
				break
			}
		}
	}
	return found
}

// judgeSets decides for each set, by what its parent has and its one label more.
func (s *scan) judgeSets() {
	filters := slices.Clone(s.filters)
	if c := s.q.Compare; c != nil && c.Times == nil {
		filters = append(filters, Filter{Key: c.Key, Values: []Value{c.A}}, Filter{Key: c.Key, Values: []Value{c.B}})
	}
	conditions := compile(s.part, filters)
	var absent uint64 // conditions that hold without their key
	for j, c := range conditions {
		if c.absent {
			absent |= 1 << j
		}
	}
	sets := s.part.sets
	s.verdicts = make([]verdict, len(sets))
	type state struct{ seen, holds uint64 } // conditions whose key is there, and whose value
	var states []state
	if len(conditions) > 0 {
		states = make([]state, len(sets))
	}
	for i := range sets {
		if i < int(Kinds) {
			if Kind(i) != s.q.Kind {
				s.verdicts[i].failed = otherKind
				continue
			}
		} else if s.verdicts[sets[i].parent].failed == otherKind {
			s.verdicts[i].failed = otherKind
			continue
		}
		if len(conditions) == 0 {
			s.verdicts[i].failed = noFilter
			continue
		}
		var at state
		if i >= int(Kinds) {
			at = states[sets[i].parent]
			p := &s.part.pairs[sets[i].pair]
			for j := range conditions {
				if c := &conditions[j]; c.known && c.key == p.key {
					at.seen |= 1 << j
					if slices.Contains(c.values, p.value) {
						at.holds |= 1 << j
					}
				}
			}
			states[i] = at
		}
		s.verdicts[i] = judged(at.holds|absent&^at.seen, len(s.filters), len(conditions) > len(s.filters))
	}
}

// judged makes a verdict of the conditions that hold: filters, then the sides of a comparison.
func judged(holds uint64, filters int, sides bool) verdict {
	v := verdict{failed: noFilter}
	switch failed := ^holds & (1<<filters - 1); bits.OnesCount64(failed) {
	case 0:
	case 1:
		v.failed = int8(bits.TrailingZeros64(failed))
	default:
		v.failed = tooMany
	}
	if sides {
		switch {
		case holds&(1<<filters) != 0:
		case holds&(1<<(filters+1)) != 0:
			v.side = 1
		default:
			v.side = -1
		}
	}
	return v
}

// judgeStacks marks the nodes on whose way to the root each frame filter matches.
func (s *scan) judgeStacks() {
	if len(s.q.Frames) == 0 {
		return
	}
	trie := s.part.trie
	s.pass = make(marks, len(trie))
	for i := range s.pass {
		s.pass[i] = true
	}
	for _, f := range s.q.Frames {
		on := make([]bool, len(trie))
		for i := 1; i < len(on); i++ {
			on[i] = on[trie[i].parent] || f.matches(s.part.frames[trie[i].frame&frameBits])
		}
		for i := range on {
			s.pass[i] = s.pass[i] && on[i]
		}
	}
}

// visit calls f with each row of the query's kind that passes the frame filters. Its side is
// -1 outside of the range of time, or on neither side of a comparison; inRange tells these apart.
func (s *scan) visit(f func(r *row, failed, side int8, inRange bool)) {
	var times *[2]Range
	if s.q.Compare != nil {
		times = s.q.Compare.Times
	}
	for i := range s.part.rows {
		r := &s.part.rows[i]
		v := s.verdicts[r.set]
		if v.failed <= tooMany || !s.pass.has(r.at) {
			continue
		}
		inRange := r.timeMs >= s.fromMs && r.timeMs < s.toMs
		if times != nil {
			switch {
			case times[0].has(r.timeMs):
				v.side, inRange = 0, true
			case times[1].has(r.timeMs):
				v.side, inRange = 1, true
			default:
				inRange = false
			}
		}
		if !inRange {
			v.side = -1
		}
		f(r, v.failed, v.side, inRange)
	}
}

func (s *scan) run() {
	allNs := make([]int64, len(s.part.sets))
	heldNs := allNs
	bounded := s.q.ToMs != 0 || s.q.Compare != nil && s.q.Compare.Times != nil
	if bounded {
		heldNs = make([]int64, len(s.part.sets))
	}
	s.failedNs = make([][]int64, len(s.filters))
	s.visit(func(r *row, failed, side int8, inRange bool) {
		if failed != noFilter {
			if inRange {
				if s.failedNs[failed] == nil {
					s.failedNs[failed] = make([]int64, len(s.part.sets))
				}
				s.failedNs[failed][r.set] += r.ns
			}
			return
		}
		allNs[r.set] += r.ns
		if bounded && inRange {
			heldNs[r.set] += r.ns
		}
		if side >= 0 {
			s.hits[side] += int64(r.hits)
			s.ns[side] += r.ns
		}
	})
	s.all = s.byPair(allNs)
	s.held = s.all
	if bounded {
		s.held = s.byPair(heldNs)
	}
}

// pairSums are times by label, and their sum over all sets, also those without labels.
type pairSums struct {
	ns  []int64
	all int64
}

// byPair adds up times of sets by the labels that they have. The times become those of the sets
// with all that begin with them.
func (s *scan) byPair(setNs []int64) pairSums {
	sums := pairSums{ns: make([]int64, len(s.part.pairs))}
	for i := len(setNs) - 1; i >= int(Kinds); i-- {
		if setNs[i] != 0 {
			n := s.part.sets[i]
			sums.ns[n.pair] += setNs[i]
			setNs[n.parent] += setNs[i]
		}
	}
	for i := range Kinds {
		sums.all += setNs[i]
	}
	return sums
}

// classes returns for each set the index of the value that it has under the key, -1 for others.
func (s *scan) classes(key string, values []Value) []int8 {
	index, absent := map[string]int8{}, int8(-1)
	for i, v := range values {
		if v.Present {
			index[v.Text] = int8(i)
		} else {
			absent = int8(i)
		}
	}
	const otherKey = -2
	id, known := ids(s.part.strings, []string{key})[key]
	ofPair := make([]int8, len(s.part.pairs))
	for i := range s.part.pairs {
		ofPair[i] = otherKey
		if p := &s.part.pairs[i]; known && p.key == id {
			ofPair[i] = -1
			if class, ok := index[s.part.strings[p.value]]; ok {
				ofPair[i] = class
			}
		}
	}
	out := make([]int8, len(s.part.sets))
	for i := range out {
		if i < int(Kinds) {
			out[i] = absent
			continue
		}
		n := s.part.sets[i]
		if out[i] = ofPair[n.pair]; out[i] == otherKey {
			out[i] = out[n.parent]
		}
	}
	return out
}
