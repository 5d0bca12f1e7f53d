package samplestore

import (
	"encoding/binary"
	"math"
)

// What an entry costs in memory besides its text; TestMemory compares. The index finds
// entries and goes when a segment takes no more.
const (
	rowBytes      = 40
	nodeBytes     = 10
	nodeIndex     = 40
	pairBytes     = 14
	pairIndex     = 10
	setBytes      = 60
	setIndex      = 70
	stringBytes   = 20
	stringIndex   = 50
	locationBytes = 150
	locationIndex = 130
	lineBytes     = 80
	lineIndex     = 30
	segmentBytes  = 4096
)

// row is a number of hits of one stack with one label set at one time.
type row struct {
	timeMs int64 // since 1970
	ns     int64
	leaf   uint32 // node of the stack's leaf
	set    uint32
	hits   uint32
}

// node is a location in a trie of stacks. Node 0 is the root, and above all stacks.
type node struct {
	parent, location uint32
}

// pair is a label: numbers of strings.
type pair struct {
	key, value uint32
	number     bool
}

// set is a label set of one kind of sample.
type set struct {
	kind  Kind
	pairs []pair
}

// columns are what queries read. They only grow at the end.
type columns struct {
	minMs, maxMs int64
	strings      []string
	locations    []*Location
	nodes        []node
	sets         []set
	rows         []row
}

// segment is a part of the store with tables of its own.
type segment struct {
	columns
	bytes       int64 // of all, by estimate
	indexBytes  int64 // of these, what the maps below take
	hits        int64
	stringIDs   map[string]uint32
	locationIDs map[string]uint32
	nodeIDs     map[node]uint32
	setIDs      map[string]uint32
	scratch     []byte
}

func newSegment() *segment {
	return &segment{
		columns:     columns{minMs: math.MaxInt64, maxMs: math.MinInt64, nodes: []node{{}}},
		bytes:       segmentBytes,
		stringIDs:   map[string]uint32{},
		locationIDs: map[string]uint32{},
		nodeIDs:     map[node]uint32{},
		setIDs:      map[string]uint32{},
	}
}

func (s *segment) add(leaf, set uint32, ms, hits, ns int64) {
	s.minMs, s.maxMs = min(s.minMs, ms), max(s.maxMs, ms)
	s.hits += hits
	s.rows = append(s.rows, row{timeMs: ms, leaf: leaf, set: set, hits: uint32(min(hits, math.MaxUint32)), ns: ns})
	s.bytes += rowBytes
}

// cost counts an entry.
func (s *segment) cost(data, index int64) {
	s.bytes += data + index
	s.indexBytes += index
}

// seal ends additions. Queries read the columns only.
func (s *segment) seal() {
	s.stringIDs, s.locationIDs, s.nodeIDs, s.setIDs, s.scratch = nil, nil, nil, nil, nil
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

// same returns a text of this segment's own, so that no text is kept twice.
func (s *segment) same(text string) (string, uint32) {
	id := s.text(text)
	return s.strings[id], id
}

func (s *segment) set(kind Kind, labels []Label) uint32 {
	pairs := make([]pair, len(labels))
	key := s.scratch[:0]
	key = append(key, byte(kind))
	for i, l := range labels {
		pairs[i] = pair{key: s.text(l.Key), value: s.text(l.Value), number: l.Number}
		key = binary.LittleEndian.AppendUint32(key, pairs[i].key)
		key = binary.LittleEndian.AppendUint32(key, pairs[i].value)
	}
	s.scratch = key
	id, ok := s.setIDs[string(key)]
	if !ok {
		id = uint32(len(s.sets))
		s.sets = append(s.sets, set{kind: kind, pairs: pairs})
		s.setIDs[string(key)] = id
		s.cost(setBytes+int64(len(pairs))*pairBytes, setIndex+int64(len(pairs))*pairIndex)
	}
	return id
}

func (s *segment) stack(stack []*Location, known map[*Location]uint32) uint32 {
	at := uint32(0)
	for i := len(stack) - 1; i >= 0; i-- {
		id, ok := known[stack[i]]
		if !ok {
			id = s.location(stack[i])
			known[stack[i]] = id
		}
		n := node{parent: at, location: id}
		next, ok := s.nodeIDs[n]
		if !ok {
			next = uint32(len(s.nodes))
			s.nodes = append(s.nodes, n)
			s.nodeIDs[n] = next
			s.cost(nodeBytes, nodeIndex)
		}
		at = next
	}
	return at
}

func (s *segment) location(l *Location) uint32 {
	made := Location{Address: l.Address, Mapping: l.Mapping, Lines: make([]Line, len(l.Lines))}
	key := binary.LittleEndian.AppendUint64(s.scratch[:0], l.Address)
	put := func(to *string, text string) {
		var id uint32
		*to, id = s.same(text)
		key = binary.LittleEndian.AppendUint32(key, id)
	}
	put(&made.Type, l.Type)
	put(&made.Mapping.File, l.Mapping.File)
	put(&made.Mapping.BuildID, l.Mapping.BuildID)
	for _, n := range []uint64{l.Mapping.Start, l.Mapping.Limit, l.Mapping.Offset} {
		key = binary.LittleEndian.AppendUint64(key, n)
	}
	for i, line := range l.Lines {
		made.Lines[i] = line
		put(&made.Lines[i].Function.Name, line.Function.Name)
		put(&made.Lines[i].Function.File, line.Function.File)
		key = binary.LittleEndian.AppendUint64(key, uint64(line.Line))
		key = binary.LittleEndian.AppendUint64(key, uint64(line.Function.StartLine))
	}
	s.scratch = key
	id, ok := s.locationIDs[string(key)]
	if !ok {
		id = uint32(len(s.locations))
		s.locations = append(s.locations, &made)
		s.locationIDs[string(key)] = id
		s.cost(locationBytes+lineBytes*int64(len(made.Lines)), locationIndex+lineIndex*int64(len(made.Lines)))
	}
	return id
}
