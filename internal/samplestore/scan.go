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
	verdicts []verdict           // by set
	pass     marks               // by trie node: a stack that ends here passes the frame filters
	but      [properties]*butOne // nil: no filter on it, or its values are not listed
	fromMs   int64               // inclusive
	toMs     int64               // exclusive

	all      pairSums   // where all filters hold, at any time
	held     pairSums   // likewise in the range of time; of no side, too
	failed   []pairSums // by filter: where only this one does not hold; zero: nowhere
	hits, ns Sides

	groups []Frame     // of the first level of the tree, if there is one
	grown  []stretch   // the stacks that were selected, by group; nil: not grown yet
	sums   []frameSums // by frame
}

func newScan(part *part, q *Query, m *scratch) *scan {
	s := &scan{part: part, q: q, fromMs: math.MinInt64, toMs: math.MaxInt64}
	if q.ToMs != 0 {
		s.fromMs, s.toMs = q.FromMs, q.ToMs
	}
	s.judgeSets(m)
	s.judgeStacks()
	s.run(m)
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

// holding says which conditions have their key in a label set, and which have a value of theirs.
type holding struct{ seen, holds uint64 }

// judgeSets decides for each set, by what its parent has and its one label more. Most labels
// are in no condition, and most sets are like their parents: there are few states to judge.
func (s *scan) judgeSets(m *scratch) {
	filters := slices.Clone(s.q.Filters)
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
	of := zeroed(&m.holding, len(s.part.pairs)) // what a label adds
	for i := range of {
		p := &s.part.pairs[i]
		for j := range conditions {
			if c := &conditions[j]; c.known && c.key == p.key {
				of[i].seen |= 1 << j
				if slices.Contains(c.values, p.value) {
					of[i].holds |= 1 << j
				}
			}
		}
	}
	judge := func(h holding) verdict {
		return judged(h.holds|absent&^h.seen, len(s.q.Filters), len(conditions) > len(s.q.Filters))
	}
	states, numbers := []holding{{}}, map[holding]uint32{{}: 0}
	verdicts := []verdict{judge(holding{})}
	sets := s.part.sets
	state := zeroed(&m.states, len(sets))
	s.verdicts = make([]verdict, len(sets))
	for i := range sets {
		if i < int(Kinds) {
			if s.verdicts[i] = verdicts[0]; Kind(i) != s.q.Kind {
				s.verdicts[i].failed = otherKind
			}
			continue
		}
		n := sets[i]
		state[i], s.verdicts[i] = state[n.parent], s.verdicts[n.parent]
		if of[n.pair].seen == 0 || s.verdicts[i].failed == otherKind {
			continue
		}
		h := states[state[i]]
		h.seen |= of[n.pair].seen
		h.holds |= of[n.pair].holds
		number, ok := numbers[h]
		if !ok {
			number = uint32(len(states))
			numbers[h] = number
			states, verdicts = append(states, h), append(verdicts, judge(h))
		}
		state[i], s.verdicts[i] = number, verdicts[number]
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

// visit calls f with each row of the query's kind whose stack passes. Its side is
// -1 outside of the range of time, or on neither side of a comparison; inRange tells these apart.
func (s *scan) visit(pass marks, f func(r *row, failed, side int8, inRange bool)) {
	var times *[2]Range
	if s.q.Compare != nil {
		times = s.q.Compare.Times
	}
	for i := range s.part.rows {
		r := &s.part.rows[i]
		v := s.verdicts[r.set]
		if v.failed <= tooMany || !pass.has(r.at) {
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

func (s *scan) run(m *scratch) {
	sets := len(s.part.sets)
	allNs := zeroed(&m.allNs, sets)
	heldNs := allNs
	bounded := s.q.ToMs != 0 || s.q.Compare != nil && s.q.Compare.Times != nil
	if bounded {
		heldNs = zeroed(&m.heldNs, sets)
	}
	failedNs := make([][]int64, len(s.q.Filters)) // by filter, nil: none
	m.failedNs = slices.Grow(m.failedNs, len(s.q.Filters))[:max(len(m.failedNs), len(s.q.Filters))]
	s.visit(s.pass, func(r *row, failed, side int8, inRange bool) {
		if failed != noFilter {
			if inRange {
				if failedNs[failed] == nil {
					failedNs[failed] = zeroed(&m.failedNs[failed], sets)
				}
				failedNs[failed][r.set] += r.ns
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
	s.failed = make([]pairSums, len(s.q.Filters))
	for j, setNs := range failedNs {
		if setNs != nil {
			s.failed[j] = s.byPair(setNs)
		}
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

// classes returns for each set the index of the value that it has under the key, -1 for others. It
// holds until the next call.
func (s *scan) classes(key string, values []Value, m *scratch) []int8 {
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
	out := zeroed(&m.classes, len(s.part.sets))
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
