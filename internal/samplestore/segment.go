package samplestore

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
)

// What an entry costs in memory besides its text; TestMemory compares. The index finds
// entries and goes when a segment takes no more.
const (
	rowBytes      = 40
	nodeBytes     = 15
	trieBytes     = 14
	setBytes      = 10
	edgeIndex     = 32 // of a node, a trie node or a set
	pairBytes     = 15
	pairIndex     = 40
	stringBytes   = 20
	stringIndex   = 40
	locationBytes = 30
	locationIndex = 160
	lineBytes     = 20
	lineIndex     = 16
	functionBytes = 20
	functionIndex = 50
	mappingBytes  = 40
	mappingIndex  = 70
	frameBytes    = 70
	frameIndex    = 120
	segmentBytes  = 4096
)

// row is a number of hits of one stack with one label set at one time.
type row struct {
	timeMs int64 // since 1970
	ns     int64
	leaf   uint32 // node of the stack's leaf
	at     uint32 // its place in the trie of frames, also when that is arranged
	set    uint32
	hits   uint32
}

// node is a location below those that it was called from. Node 0 is above all stacks.
type node struct {
	parent, location uint32
	at               uint32 // in the trie of frames, before that is arranged
}

// trieNode is a frame below those that it was called from, whatever their addresses. Node 0 is
// above all. The frame has marks.
type trieNode struct{ parent, frame uint32 }

// Marks of a frame in a trie: what it is the first of on the way from the root. Sums over these
// nodes count a function, a module or a type once, however often it is on a stack.
const (
	firstFunction = 1 << 31
	firstModule   = 1 << 30
	firstType     = 1 << 29
	frameBits     = 1<<29 - 1
)

// pair is a label: numbers of strings.
type pair struct {
	key, value uint32
	number     bool
}

// setNode is a label set: that of its parent and one label more. The first nodes, one for each
// kind of sample, have none.
type setNode struct{ parent, pair uint32 }

type mapping struct {
	start, limit, offset uint64
	file, buildID        uint32
}

type function struct {
	name, file uint32
	startLine  int64
}

type line struct {
	line     int64
	function uint32
}

// location has its lines from one place in the table of lines on.
type location struct {
	address       uint64
	mapping, kind uint32
	lines, count  uint32
}

// columns are what queries read. They only grow at the end.
type columns struct {
	minMs, maxMs int64
	strings      []string
	mappings     []mapping
	functions    []function
	lines        []line
	locations    []location
	frames       []Frame
	hashes       []uint64 // by frame, with a seed of the store's
	nodes        []node
	trie         []trieNode
	ends         []uint32 // by place in the trie, if it is arranged: the first one that is not below
	pairs        []pair
	sets         []setNode
	rows         []row
}

// segment is a part of the store with tables of its own.
type segment struct {
	columns
	bytes      int64 // of all, by estimate
	indexBytes int64 // of these, what the index takes
	hits       int64
	gone       atomic.Bool // evicted
	ns         int64       // of all rows: no sum over some of them overflows
	seed       maphash.Seed
	*index
}

type edge struct{ parent, child uint32 }

// index finds what is in the tables already.
type index struct {
	stringIDs   map[string]uint32
	mappingIDs  map[mapping]uint32
	functionIDs map[function]uint32
	locationIDs map[string]uint32
	frameIDs    map[Frame]uint32
	nodeIDs     map[edge]uint32
	trieIDs     map[edge]uint32
	pairIDs     map[pair]uint32
	setIDs      map[edge]uint32

	frameTexts [][2]uint32 // by frame: strings of its module and its type
	framesOf   [][]uint32  // by location: outermost first
	pairSeen   []uint32    // by label: how often it came
	scratch    []byte
	order      []ranked

	// What is on the way from the root, where the mark is that of the round.
	round                           uint32
	seenFrame, seenModule, seenKind []uint32
}

// ranked is a label with its place in a set.
type ranked struct {
	rank      int
	key, pair uint32
}

func newSegment(seed maphash.Seed) *segment {
	s := &segment{
		columns: columns{
			minMs: math.MaxInt64, maxMs: math.MinInt64,
			nodes: []node{{}}, trie: []trieNode{{frame: frameBits}}, sets: make([]setNode, Kinds),
		},
		bytes: segmentBytes, seed: seed,
		index: &index{
			stringIDs: map[string]uint32{}, mappingIDs: map[mapping]uint32{}, functionIDs: map[function]uint32{},
			locationIDs: map[string]uint32{}, frameIDs: map[Frame]uint32{}, nodeIDs: map[edge]uint32{},
			trieIDs: map[edge]uint32{}, pairIDs: map[pair]uint32{}, setIDs: map[edge]uint32{},
		},
	}
	return s
}

// fits reports whether the times of all rows can still be added up with one more.
func (s *segment) fits(ns int64) bool { return ns <= math.MaxInt64-s.ns }

// add adds a row, whose time fits.
func (s *segment) add(leaf, set uint32, ms, hits, ns int64) {
	s.minMs, s.maxMs = min(s.minMs, ms), max(s.maxMs, ms)
	s.hits = AddNs(s.hits, hits)
	s.ns += ns
	s.rows = append(s.rows, row{timeMs: ms, leaf: leaf, at: s.nodes[leaf].at, set: set, hits: uint32(min(hits, math.MaxUint32)), ns: ns})
	s.bytes += rowBytes
}

// cost counts an entry.
func (s *segment) cost(data, index int64) {
	s.bytes += data + index
	s.indexBytes += index
}

// seal ends additions. Queries read the columns only.
func (s *segment) seal() {
	s.index = nil
	s.arrange()
	s.bytes -= s.indexBytes
	s.indexBytes = 0
}

func (s *segment) text(text string) uint32 {
	id, ok := s.stringIDs[text]
	if !ok {
		id = uint32(len(s.strings))
		s.strings = append(s.strings, text)
		s.stringIDs[text] = id
		s.cost(stringBytes+int64(len(text)), stringIndex)
	}
	return id
}

// set returns a label set. Labels that came often stand first, so that sets share what they begin
// with; the order may change as more come, which makes another set of the same labels.
func (s *segment) set(kind Kind, labels []Label) uint32 {
	s.order = s.order[:0]
	for _, l := range labels {
		p := pair{key: s.text(l.Key), value: s.text(l.Value), number: l.Number}
		id, ok := s.pairIDs[p]
		if !ok {
			id = uint32(len(s.pairs))
			s.pairs = append(s.pairs, p)
			s.pairIDs[p] = id
			s.pairSeen = append(s.pairSeen, 0)
			s.cost(pairBytes, pairIndex)
		}
		s.pairSeen[id]++
		s.order = append(s.order, ranked{rank: bits.Len32(s.pairSeen[id]), key: p.key, pair: id})
	}
	slices.SortFunc(s.order, func(a, b ranked) int {
		if a.rank != b.rank {
			return b.rank - a.rank
		}
		return int(a.key) - int(b.key)
	})
	at := uint32(kind)
	for _, r := range s.order {
		e := edge{at, r.pair}
		next, ok := s.setIDs[e]
		if !ok {
			next = uint32(len(s.sets))
			s.sets = append(s.sets, setNode{at, r.pair})
			s.setIDs[e] = next
			s.cost(setBytes, edgeIndex)
		}
		at = next
	}
	return at
}

func (s *segment) stack(stack []*Location, known map[*Location]uint32) uint32 {
	at, fresh := uint32(0), false
	for i := len(stack) - 1; i >= 0; i-- {
		id, ok := known[stack[i]]
		if !ok {
			id = s.location(stack[i])
			known[stack[i]] = id
		}
		e := edge{at, id}
		next, ok := s.nodeIDs[e]
		if !ok {
			frame := s.nodes[at].at
			if !fresh {
				s.seeAbove(frame)
				fresh = true
			}
			for _, f := range s.framesOf[id] {
				frame = s.child(frame, f)
			}
			next = uint32(len(s.nodes))
			s.nodes = append(s.nodes, node{at, id, frame})
			s.nodeIDs[e] = next
			s.cost(nodeBytes, edgeIndex)
		}
		at = next
	}
	return at
}

// child returns the node for a frame below another one. Code without names is one frame,
// however many calls there are within it.
func (s *segment) child(parent, frame uint32) uint32 {
	if s.trie[parent].frame&frameBits == frame && s.frames[frame].Name == "" {
		return parent
	}
	e := edge{parent, frame}
	id, ok := s.trieIDs[e]
	marks := s.see(frame)
	if !ok {
		id = uint32(len(s.trie))
		s.trie = append(s.trie, trieNode{parent, frame | marks})
		s.trieIDs[e] = id
		s.cost(trieBytes, edgeIndex)
	}
	return id
}

// seeAbove begins a round with what is on the way to a node.
func (s *segment) seeAbove(at uint32) {
	s.round++
	for ; at != 0; at = s.trie[at].parent {
		s.see(s.trie[at].frame & frameBits)
	}
}

// see returns what a frame is the first of in this round.
func (s *segment) see(frame uint32) (marks uint32) {
	for _, t := range []struct {
		seen *[]uint32
		id   uint32
		mark uint32
	}{
		{&s.seenFrame, frame, firstFunction},
		{&s.seenModule, s.frameTexts[frame][0], firstModule},
		{&s.seenKind, s.frameTexts[frame][1], firstType},
	} {
		if n := int(t.id) + 1; n > len(*t.seen) {
			*t.seen = append(*t.seen, make([]uint32, n-len(*t.seen))...)
		}
		if at := &(*t.seen)[t.id]; *at != s.round {
			*at = s.round
			marks |= t.mark
		}
	}
	return marks
}

func (s *segment) location(l *Location) uint32 {
	made := location{address: l.Address, kind: s.text(l.Type), lines: uint32(len(s.lines)), count: uint32(len(l.Lines))}
	made.mapping = s.mapping(l.Mapping)
	key := binary.LittleEndian.AppendUint64(s.scratch[:0], l.Address)
	key = binary.LittleEndian.AppendUint32(key, made.kind)
	key = binary.LittleEndian.AppendUint32(key, made.mapping)
	for _, entry := range l.Lines {
		f := s.function(entry.Function)
		s.lines = append(s.lines, line{entry.Line, f})
		key = binary.LittleEndian.AppendUint32(key, f)
		key = binary.LittleEndian.AppendUint64(key, uint64(entry.Line))
	}
	s.scratch = key
	id, ok := s.locationIDs[string(key)]
	if ok {
		s.lines = s.lines[:made.lines] // seen by nobody yet
		return id
	}
	id = uint32(len(s.locations))
	s.locations = append(s.locations, made)
	s.locationIDs[string(key)] = id
	var frames []uint32
	for _, f := range l.frames() {
		frames = append(frames, s.frame(f))
	}
	s.framesOf = append(s.framesOf, frames)
	s.cost(locationBytes+lineBytes*int64(len(l.Lines)), locationIndex+lineIndex*int64(len(l.Lines)))
	return id
}

func (s *segment) mapping(m Mapping) uint32 {
	made := mapping{m.Start, m.Limit, m.Offset, s.text(m.File), s.text(m.BuildID)}
	id, ok := s.mappingIDs[made]
	if !ok {
		id = uint32(len(s.mappings))
		s.mappings = append(s.mappings, made)
		s.mappingIDs[made] = id
		s.cost(mappingBytes, mappingIndex)
	}
	return id
}

func (s *segment) function(f Function) uint32 {
	made := function{s.text(f.Name), s.text(f.File), f.StartLine}
	id, ok := s.functionIDs[made]
	if !ok {
		id = uint32(len(s.functions))
		s.functions = append(s.functions, made)
		s.functionIDs[made] = id
		s.cost(functionBytes, functionIndex)
	}
	return id
}

// frame returns the number of a frame, with texts of this segment's own.
func (s *segment) frame(f Frame) uint32 {
	id, ok := s.frameIDs[f]
	if !ok {
		name, module, kind := s.text(f.Name), s.text(f.Module), s.text(f.Type)
		f = Frame{Name: s.strings[name], Module: s.strings[module], Type: s.strings[kind]}
		id = uint32(len(s.frames))
		s.frames = append(s.frames, f)
		s.hashes = append(s.hashes, maphash.Comparable(s.seed, f))
		s.frameIDs[f] = id
		s.frameTexts = append(s.frameTexts, [2]uint32{module, kind})
		s.cost(frameBytes, frameIndex)
	}
	return id
}
