package samplestore

import "math"

const (
	noFilter = -1 // of failed: all hold
	tooMany  = -2 // of failed: more than one does not hold
)

// verdict is what a query says of a label set.
type verdict struct {
	kind   bool
	failed int16 // the one filter that does not hold
	side   int8  // of a comparison, -1: on none
}

// marks are some of the entries of a table; none: all of them.
type marks []bool

func (m marks) has(i uint32) bool { return len(m) == 0 || m[i] }

// scan is a query on one part.
type scan struct {
	part     *columns
	q        *Query
	verdicts []verdict // by set
	pass     marks     // by node: a stack with this leaf passes the frame filters
	fromMs   int64     // inclusive
	toMs     int64     // exclusive

	setNs    []int64 // by set, in the range of time
	allNs    []int64 // by set that passes, at any time
	leafNs   []Sides // by node
	hits, ns Sides
	heldNs   int64   // in the range of time, all filters hold; of no side, too
	failedNs []int64 // by filter, likewise where only this one does not hold
}

func newScan(part *columns, q *Query) *scan {
	s := &scan{part: part, q: q, fromMs: math.MinInt64, toMs: math.MaxInt64}
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
	known  bool // the part has the key
	values []compiledValue
}

type compiledValue struct {
	value   uint32
	present bool
}

// compile looks the texts of filters up once for a part.
func compile(part *columns, filters []Filter) []compiled {
	var wanted []string
	for _, f := range filters {
		wanted = append(wanted, f.Key)
		for _, v := range f.Values {
			wanted = append(wanted, v.Text)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	known := ids(part.strings, wanted)
	all := make([]compiled, len(filters))
	for i, f := range filters {
		all[i].key, all[i].known = known[f.Key], false
		_, all[i].known = known[f.Key]
		for _, v := range f.Values {
			if !v.Present {
				all[i].values = append(all[i].values, compiledValue{})
			} else if id, ok := known[v.Text]; ok {
				all[i].values = append(all[i].values, compiledValue{value: id, present: true})
			}
		}
	}
	return all
}

// of returns what a set has under the key.
func (c *compiled) of(s *set) compiledValue {
	if c.known {
		for _, p := range s.pairs {
			if p.key == c.key {
				return compiledValue{value: p.value, present: true}
			}
		}
	}
	return compiledValue{}
}

func (c *compiled) holds(s *set) bool {
	has := c.of(s)
	for _, v := range c.values {
		if v == has {
			return true
		}
	}
	return false
}

func (s *scan) judgeSets() {
	filters := compile(s.part, s.q.Filters)
	var sides []compiled
	if c := s.q.Compare; c != nil {
		sides = compile(s.part, []Filter{{Key: c.Key, Values: []Value{c.A}}, {Key: c.Key, Values: []Value{c.B}}})
	}
	s.verdicts = make([]verdict, len(s.part.sets))
	for i := range s.part.sets {
		set := &s.part.sets[i]
		v := verdict{kind: set.kind == s.q.Kind, failed: noFilter}
		for j := range filters {
			switch {
			case filters[j].holds(set):
			case v.failed == noFilter:
				v.failed = int16(j)
			default:
				v.failed = tooMany
			}
		}
		if sides != nil {
			switch {
			case sides[0].holds(set):
			case sides[1].holds(set):
				v.side = 1
			default:
				v.side = -1
			}
		}
		s.verdicts[i] = v
	}
}

// judgeStacks marks the nodes on whose way to the root each frame filter matches.
func (s *scan) judgeStacks() {
	if len(s.q.Frames) == 0 {
		return
	}
	s.pass = make(marks, len(s.part.nodes))
	for i := range s.pass {
		s.pass[i] = true
	}
	for _, f := range s.q.Frames {
		matches := make([]bool, len(s.part.locations))
		for i, l := range s.part.locations {
			for _, frame := range l.frames() {
				matches[i] = matches[i] || f.matches(frame)
			}
		}
		on := make([]bool, len(s.part.nodes))
		for i := 1; i < len(on); i++ {
			n := s.part.nodes[i]
			on[i] = on[n.parent] || matches[n.location]
		}
		for i := range on {
			s.pass[i] = s.pass[i] && on[i]
		}
	}
}

// visit calls f with each row of the query's kind that passes the frame filters.
func (s *scan) visit(f func(r *row, v verdict, inRange bool)) {
	for i := range s.part.rows {
		r := &s.part.rows[i]
		v := s.verdicts[r.set]
		if !v.kind || v.failed == tooMany || !s.pass.has(r.leaf) {
			continue
		}
		f(r, v, r.timeMs >= s.fromMs && r.timeMs < s.toMs)
	}
}

func (s *scan) run() {
	s.setNs = make([]int64, len(s.part.sets))
	s.allNs = make([]int64, len(s.part.sets))
	s.leafNs = make([]Sides, len(s.part.nodes))
	s.failedNs = make([]int64, len(s.q.Filters))
	s.visit(func(r *row, v verdict, inRange bool) {
		if v.failed == noFilter {
			s.allNs[r.set] += r.ns
		}
		if !inRange {
			return
		}
		s.setNs[r.set] += r.ns
		if v.failed == noFilter {
			s.heldNs += r.ns
		} else {
			s.failedNs[v.failed] += r.ns
		}
		if v.failed == noFilter && v.side >= 0 {
			s.leafNs[r.leaf][v.side] += r.ns
			s.hits[v.side] += int64(r.hits)
			s.ns[v.side] += r.ns
		}
	})
}
