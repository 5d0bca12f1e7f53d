package profile

import (
	"encoding/binary"
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// What a timestamp and a value of a sample take at most when they are sent, and what the lengths of all that a sample
// is in grow by when it has more of them.
const (
	sentTimeBytes   = 8
	sentValueBytes  = binary.MaxVarintLen64
	sentLengthBytes = 6 * binary.MaxVarintLen32
)

// sent bounds what samples of profiles take in requests with some of them each, as requestBytes does, but before these
// are made, and without a look at texts: it costs little, how large these may be. What is in the dictionary is in a
// request once.
type sent struct {
	dict  pprofile.ProfilesDictionary
	time  int // bytes of a timestamp, with its value
	empty int // bytes of a request without samples

	request int32 // at hand
	// The last request that had each element of the dictionary.
	strings, attributes, functions, mappings, locations, stacks, links []int32
}

func newSent(dict pprofile.ProfilesDictionary, values bool) *sent {
	empty := pprofile.NewProfiles()
	newTables(empty.Dictionary())
	s := &sent{
		dict: dict, time: sentTimeBytes, empty: requestBytes(empty) + sentLengthBytes,
		strings:    make([]int32, dict.StringTable().Len()),
		attributes: make([]int32, dict.AttributeTable().Len()),
		functions:  make([]int32, dict.FunctionTable().Len()),
		mappings:   make([]int32, dict.MappingTable().Len()),
		locations:  make([]int32, dict.LocationTable().Len()),
		stacks:     make([]int32, dict.StackTable().Len()),
		links:      make([]int32, dict.LinkTable().Len()),
	}
	if values {
		s.time += sentValueBytes
	}
	return s
}

// next says that what follows is in another request.
func (s *sent) next() { s.request++ }

// once reports whether the request at hand did not have an element yet; now it has.
func (s *sent) once(had []int32, i int32) bool {
	if had[i] == s.request {
		return false
	}
	had[i] = s.request
	return true
}

// sample returns by how much the request at hand grows by a sample with so many of its timestamps.
func (s *sent) sample(x pprofile.Sample, times int) int {
	n := index(x.StackIndex(), s.stacks) + index(x.LinkIndex(), s.links) + list(x.AttributeIndices(), s.attributes) +
		2*lengthBytes(times*s.time) + times*s.time
	bytes := withLength(n) + s.stack(x.StackIndex()) + s.allAttributes(x.AttributeIndices())
	if s.once(s.links, x.LinkIndex()) {
		link := s.dict.LinkTable().At(int(x.LinkIndex()))
		bytes += withLength(withLength(len(link.TraceID())) + withLength(len(link.SpanID())))
	}
	return bytes
}

// profile returns by how much the request grows by what a profile has beside its samples, in the dictionary.
func (s *sent) profile(p pprofile.Profile) int {
	return s.text(p.SampleType().TypeStrindex()) + s.text(p.SampleType().UnitStrindex()) +
		s.text(p.PeriodType().TypeStrindex()) + s.text(p.PeriodType().UnitStrindex()) + s.allAttributes(p.AttributeIndices())
}

func (s *sent) stack(i int32) int {
	if !s.once(s.stacks, i) {
		return 0
	}
	locations := s.dict.StackTable().At(int(i)).LocationIndices()
	bytes := withLength(list(locations, s.locations))
	for _, l := range locations.All() {
		bytes += s.location(l)
	}
	return bytes
}

func (s *sent) location(i int32) int {
	if !s.once(s.locations, i) {
		return 0
	}
	l := s.dict.LocationTable().At(int(i))
	n, bytes := index(l.MappingIndex(), s.mappings)+number(l.Address())+list(l.AttributeIndices(), s.attributes), 0
	for _, line := range l.Lines().All() {
		n += withLength(index(line.FunctionIndex(), s.functions) + number(uint64(line.Line())))
		bytes += s.function(line.FunctionIndex())
	}
	return withLength(n) + bytes + s.mapping(l.MappingIndex()) + s.allAttributes(l.AttributeIndices())
}

func (s *sent) function(i int32) int {
	if !s.once(s.functions, i) {
		return 0
	}
	f := s.dict.FunctionTable().At(int(i))
	n := index(f.NameStrindex(), s.strings) + index(f.FilenameStrindex(), s.strings) + number(uint64(f.StartLine()))
	return withLength(n) + s.text(f.NameStrindex()) + s.text(f.FilenameStrindex())
}

func (s *sent) mapping(i int32) int {
	if !s.once(s.mappings, i) {
		return 0
	}
	m := s.dict.MappingTable().At(int(i))
	n := number(m.MemoryStart()) + number(m.MemoryLimit()) + number(m.FileOffset()) +
		index(m.FilenameStrindex(), s.strings) + list(m.AttributeIndices(), s.attributes)
	return withLength(n) + s.text(m.FilenameStrindex()) + s.allAttributes(m.AttributeIndices())
}

func (s *sent) allAttributes(indexes pcommon.Int32Slice) (bytes int) {
	for _, i := range indexes.All() {
		bytes += s.attribute(i)
	}
	return bytes
}

func (s *sent) attribute(i int32) int {
	if !s.once(s.attributes, i) {
		return 0
	}
	a := s.dict.AttributeTable().At(int(i))
	n := index(a.KeyStrindex(), s.strings) + index(a.UnitStrindex(), s.strings) + withLength(sentValue(a.Value()))
	return withLength(n) + referenceBytes + s.text(a.KeyStrindex()) + s.text(a.UnitStrindex())
}

// sentValue is what a value takes at most, which is none of several.
func sentValue(v pcommon.Value) int {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return withLength(len(v.Str()))
	case pcommon.ValueTypeBytes:
		return withLength(v.Bytes().Len())
	case pcommon.ValueTypeInt:
		return 1 + varintBytes(uint64(v.Int()))
	default:
		return 1 + 8
	}
}

func (s *sent) text(i int32) int {
	if !s.once(s.strings, i) {
		return 0
	}
	return withLength(len(s.dict.StringTable().At(int(i))))
}

// index returns what an index into a table takes at most as a field, which is not there if it is 0; list what several
// take.
func index(i int32, table []int32) int {
	if i == 0 {
		return 0
	}
	return 1 + varintBytes(uint64(len(table)))
}

func list(indexes pcommon.Int32Slice, table []int32) int {
	return withLength(indexes.Len() * varintBytes(uint64(len(table))))
}

// withLength returns what a field of so many bytes takes, lengthBytes what that is more than these.
func withLength(n int) int { return lengthBytes(n) + n }

func lengthBytes(n int) int { return 1 + varintBytes(uint64(n)) }

// number returns what a field with a number takes, which is not there if it is 0.
func number(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + varintBytes(v)
}

func varintBytes(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
