package profile

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// tables fills the dictionary of one batch. Every table has an index of its
// own: pprofile's helpers search linearly. Element 0 of each is the zero value,
// which means "not set". Whatever a method adds is referred to by its caller,
// so that nothing in the dictionary is an orphan.
type tables struct {
	dict       pprofile.ProfilesDictionary
	strings    map[string]int32
	attributes map[attribute]int32
	functions  map[function]int32
	mappings   map[Mapping]int32
	locations  map[location]int32
	stacks     map[uint64]int32 // by hash, the last stack that had it
	seed       maphash.Seed
	links      map[labels.Link]linkRef
	scratch    []byte
	lines      []line // of the location at hand
	bytes      int    // estimate of what was added, but for links and stacks
}

// attribute is a key and a scalar value. Of text and number, kind selects one; a
// double is its bits.
type attribute struct {
	key    string
	unit   string
	kind   pcommon.ValueType
	text   string
	number int64
}

func textAttr(key, value string) attribute {
	return attribute{key: key, kind: pcommon.ValueTypeStr, text: value}
}

func bytesAttr(key, value string) attribute {
	return attribute{key: key, kind: pcommon.ValueTypeBytes, text: value}
}

func intAttr(key string, value int64) attribute {
	return attribute{key: key, kind: pcommon.ValueTypeInt, number: value}
}

func boolAttr(key string, value bool) attribute {
	a := attribute{key: key, kind: pcommon.ValueTypeBool}
	if value {
		a.number = 1
	}
	return a
}

func doubleAttr(key string, value float64) attribute {
	return attribute{key: key, kind: pcommon.ValueTypeDouble, number: int64(math.Float64bits(value))}
}

// trueAttr is a mark; there is no false one.
func trueAttr(key string) attribute { return boolAttr(key, true) }

type function struct {
	name, file int32
	startLine  int64
}

type location struct {
	mapping, frameType int32
	addr               uint64
	line               line   // the first
	rest               string // of the lines, encoded
}

// line is function 0 if there is none.
type line struct {
	function int32
	line     int64
}

// linkRef is a link in the table; its ids as attributes are added when asked for.
type linkRef struct {
	index, trace, span int32
}

func newTables(dict pprofile.ProfilesDictionary) *tables {
	dict.StringTable().Append("")
	dict.AttributeTable().AppendEmpty()
	dict.FunctionTable().AppendEmpty()
	dict.MappingTable().AppendEmpty()
	dict.LocationTable().AppendEmpty()
	dict.StackTable().AppendEmpty()
	dict.LinkTable().AppendEmpty()
	return &tables{
		dict:       dict,
		strings:    map[string]int32{"": 0},
		attributes: map[attribute]int32{},
		functions:  map[function]int32{{}: 0},
		mappings:   map[Mapping]int32{{}: 0},
		locations:  map[location]int32{},
		stacks:     map[uint64]int32{},
		seed:       maphash.MakeSeed(),
		links:      map[labels.Link]linkRef{{}: {}},
	}
}

// string returns the index of s, made valid.
func (t *tables) string(s string) int32 {
	if i, ok := t.strings[s]; ok {
		return i
	}
	valid := clean(s)
	i, ok := t.strings[valid]
	if !ok {
		i = int32(t.dict.StringTable().Len())
		t.dict.StringTable().Append(valid)
		t.strings[valid] = i
		t.bytes += tableStringBytes + len(valid)
	}
	t.strings[s] = i
	return i
}

// attribute returns the index of a; key and text are valid UTF-8.
func (t *tables) attribute(a attribute) int32 {
	if i, ok := t.attributes[a]; ok {
		return i
	}
	i := int32(t.dict.AttributeTable().Len())
	t.attributes[a] = i
	t.bytes += tableAttributeBytes
	kv := t.dict.AttributeTable().AppendEmpty()
	kv.SetKeyStrindex(t.string(a.key))
	kv.SetUnitStrindex(t.string(a.unit))
	switch a.kind {
	case pcommon.ValueTypeStr:
		kv.Value().SetStr(a.text)
	case pcommon.ValueTypeBytes:
		kv.Value().SetEmptyBytes().FromRaw([]byte(a.text))
	case pcommon.ValueTypeInt:
		kv.Value().SetInt(a.number)
	case pcommon.ValueTypeDouble:
		kv.Value().SetDouble(math.Float64frombits(uint64(a.number)))
	case pcommon.ValueTypeBool:
		kv.Value().SetBool(a.number != 0)
	}
	return i
}

func (t *tables) function(name, file string, startLine int64) int32 {
	f := function{name: t.string(name), file: t.string(file), startLine: max(startLine, 0)}
	if i, ok := t.functions[f]; ok {
		return i
	}
	i := int32(t.dict.FunctionTable().Len())
	t.functions[f] = i
	t.bytes += tableFunctionBytes
	entry := t.dict.FunctionTable().AppendEmpty()
	entry.SetNameStrindex(f.name)
	entry.SetFilenameStrindex(f.file)
	entry.SetStartLine(f.startLine)
	return i
}

func (t *tables) mapping(m Mapping) int32 {
	m.Filename, m.BuildIDGNU = clean(m.Filename), clean(m.BuildIDGNU)
	m.BuildIDGo, m.BuildIDHTLHash = clean(m.BuildIDGo), clean(m.BuildIDHTLHash)
	if i, ok := t.mappings[m]; ok {
		return i
	}
	i := int32(t.dict.MappingTable().Len())
	t.mappings[m] = i
	t.bytes += tableMappingBytes
	entry := t.dict.MappingTable().AppendEmpty()
	entry.SetMemoryStart(m.Start)
	entry.SetMemoryLimit(m.Limit)
	entry.SetFileOffset(m.FileOffset)
	entry.SetFilenameStrindex(t.string(m.Filename))
	if m.BuildIDGNU != "" {
		entry.AttributeIndices().Append(t.attribute(textAttr(attrBuildIDGNU, m.BuildIDGNU)))
	}
	if m.BuildIDGo != "" {
		entry.AttributeIndices().Append(t.attribute(textAttr(attrBuildIDGo, m.BuildIDGo)))
	}
	if m.BuildIDHTLHash != "" {
		entry.AttributeIndices().Append(t.attribute(textAttr(attrBuildIDHTLHash, m.BuildIDHTLHash)))
	}
	return i
}

// unknownFunction stands where nothing at all is known.
const unknownFunction = "[unknown]"

// defaultFrameType is that of what stands in the place of frames: consumers refuse a location without a type.
const defaultFrameType = "native"

// location returns the index of a frame at addr.
func (t *tables) location(addr uint64, f Frame) int32 {
	l := location{addr: addr}
	if f.Mapping != nil && f.Mapping.contains(addr) {
		l.mapping = t.mapping(*f.Mapping)
	}
	t.lines = t.lines[:0]
	for _, x := range f.Lines {
		if x.Function != "" || x.File != "" {
			t.lines = append(t.lines, line{t.function(x.Function, x.File, x.StartLine), max(x.Line, 0)})
		}
	}
	if l == (location{}) && len(t.lines) == 0 && f.Type == "" {
		t.lines = append(t.lines, line{function: t.function(unknownFunction, "", 0)})
	}
	l.frameType = t.attribute(textAttr(attrFrameType, clean(cmp.Or(f.Type, defaultFrameType))))
	if len(t.lines) > 0 {
		l.line = t.lines[0]
		l.rest = string(t.encoded(t.lines[1:]))
	}
	if i, ok := t.locations[l]; ok {
		return i
	}
	i := int32(t.dict.LocationTable().Len())
	t.locations[l] = i
	t.bytes += tableLocationBytes + tableLineBytes*len(t.lines)
	entry := t.dict.LocationTable().AppendEmpty()
	entry.SetAddress(l.addr)
	entry.SetMappingIndex(l.mapping)
	for _, x := range t.lines {
		added := entry.Lines().AppendEmpty()
		added.SetFunctionIndex(x.function)
		added.SetLine(x.line)
	}
	entry.AttributeIndices().Append(l.frameType)
	return i
}

// encoded gives different lists of lines different bytes, valid until the next call.
func (t *tables) encoded(lines []line) []byte {
	b := t.scratch[:0]
	for _, x := range lines {
		b = binary.LittleEndian.AppendUint32(b, uint32(x.function))
		b = binary.LittleEndian.AppendUint64(b, uint64(x.line))
	}
	t.scratch = b
	return b
}

// stack returns the index of a stack of at least one location, given from the outermost.
func (t *tables) stack(locations []int32) int32 {
	t.scratch = appendIndexes(t.scratch[:0], locations)
	hash := maphash.Bytes(t.seed, t.scratch)
	if i, ok := t.stacks[hash]; ok && isStack(t.dict.StackTable().At(int(i)), locations) {
		return i
	}
	i := int32(t.dict.StackTable().Len())
	t.stacks[hash] = i
	slices.Reverse(locations)
	t.dict.StackTable().AppendEmpty().LocationIndices().FromRaw(locations)
	slices.Reverse(locations)
	return i
}

func isStack(s pprofile.Stack, locations []int32) bool {
	indexes := s.LocationIndices()
	n := indexes.Len()
	if n != len(locations) {
		return false
	}
	for i, location := range locations {
		if indexes.At(n-1-i) != location {
			return false
		}
	}
	return true
}

// link returns a link and, if asked, its attributes.
func (t *tables) link(l labels.Link, attributes bool) linkRef {
	if ref, ok := t.links[l]; ok {
		return ref
	}
	ref := linkRef{index: int32(t.dict.LinkTable().Len())}
	entry := t.dict.LinkTable().AppendEmpty()
	entry.SetTraceID(l.TraceID)
	entry.SetSpanID(l.SpanID)
	if attributes {
		ref.trace = t.attribute(textAttr(attrTraceID, hex.EncodeToString(l.TraceID[:])))
		ref.span = t.attribute(textAttr(attrSpanID, hex.EncodeToString(l.SpanID[:])))
	}
	t.links[l] = ref
	return ref
}

// appendIndexes encodes indexes with a fixed width, so that no two lists of
// them have one encoding.
func appendIndexes(b []byte, indexes []int32) []byte {
	for _, i := range indexes {
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
	}
	return b
}
