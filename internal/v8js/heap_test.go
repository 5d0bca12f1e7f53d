package v8js

import (
	"encoding/binary"
	"errors"
	"slices"
	"unicode/utf16"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

var errFault = errors.New("bad address")

// memory is what a process has from base on.
type memory struct{ bytes []byte }

const base = 0x7f0000000000

func (m *memory) ReadAt(p []byte, addr uint64) error {
	at := addr - base
	if at > uint64(len(m.bytes)) || uint64(len(p)) > uint64(len(m.bytes))-at {
		return errFault
	}
	copy(p, m.bytes[at:])
	return nil
}

func (m *memory) put(addr uint64, words ...uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(m.bytes[addr-base+8*uint64(i):], w)
	}
}

// Types of objects in tests.
const (
	typeFunction = 2066 + iota
	_
	typeShared
	typeScript
	typeScope
	typeBytecode
	typeInterpreterData
	typeCode
	typeList
	typeByteArray
	typeWeakArray
	typeWrapper
	typeUndefined
)

// testLayout is that of a version in a build with the types of tests.
func testLayout(v version) *Layout {
	r, _ := releaseOf(v)
	l := &Layout{version: v, release: r, types: types{
		shared: typeShared, script: typeScript, scopeInfo: typeScope, bytecode: typeBytecode,
		interpreterData: typeInterpreterData, code: typeCode, byteArray: typeByteArray,
		trustedByteArray: typeByteArray, weakArray: typeWeakArray, trustedWeakArray: typeWeakArray, sharedInner: typeWrapper,
	}}
	l.process = record.V8Process{
		SharedType: typeShared, ScriptType: typeScript, BytecodeType: typeBytecode, CodeType: typeCode, ListType: typeList,
		FunctionShared: r.functionShared, SharedData: r.data, SharedBuiltin: r.builtin, SharedName: r.name,
		SharedScript: r.script, SharedLiteral: r.id, DeoptShared: arrayData + 8*r.deoptShared,
	}
	return l
}

// A builder lays out objects.
type builder struct {
	*memory
	l       *Layout
	next    uint64
	maps    map[uint16]uint64
	objects []placed // in the order in which they were made
	other   bool     // objects are of the sizes that they else have, but say something else
}

type placed struct {
	pointer uint64
	bytes   int
}

func newBuilder(v version) *builder {
	return &builder{memory: &memory{make([]byte, 64<<10)}, l: testLayout(v), next: base + 64, maps: map[uint16]uint64{}}
}

func (b *builder) alloc(bytes int) uint64 {
	at := b.next
	b.next += uint64(bytes+15) &^ 15
	return at
}

// object makes one of a type and returns the pointer to it.
func (b *builder) object(t uint16, bytes int) uint64 {
	if b.maps[t] == 0 {
		b.maps[t] = b.alloc(16)
		binary.LittleEndian.PutUint16(b.bytes[b.maps[t]-base+mapType:], t)
	}
	at := b.alloc(bytes)
	b.put(at, b.maps[t]|1)
	b.objects = append(b.objects, placed{at | 1, bytes})
	return at | 1
}

func (b *builder) set(object uint64, offset uint8, words ...uint64) {
	b.put(object-1+uint64(offset), words...)
}

func (b *builder) half(object uint64, offset uint8, v uint32) {
	binary.LittleEndian.PutUint32(b.bytes[object-1+uint64(offset)-base:], v)
}

func smiOf(v int) uint64 { return uint64(uint32(int32(v))) << 32 }

func (b *builder) array(content []byte) uint64 {
	o := b.object(typeByteArray, arrayData+len(content)+8)
	b.set(o, arrayLength, smiOf(len(content)))
	copy(b.bytes[o-1+arrayData-base:], content)
	return o
}

func (b *builder) words(t uint16, words ...uint64) uint64 {
	o := b.object(t, arrayData+8*len(words))
	b.set(o, arrayLength, append([]uint64{smiOf(len(words))}, words...)...)
	return o
}

// or returns one of two numbers.
func (b *builder) or(usual, other int) int {
	if b.other {
		return other
	}
	return usual
}

func (b *builder) text(s string) uint64 {
	if b.other {
		runes := []rune(s)
		slices.Reverse(runes)
		s = string(runes)
	}
	o := b.object(stringSequential|stringOneByte, stringData+len(s)+8)
	b.half(o, stringLength, uint32(len(s)))
	copy(b.bytes[o-1+stringData-base:], s)
	return o
}

func (b *builder) wide(s string) uint64 {
	units := utf16.Encode([]rune(s))
	o := b.object(stringSequential, stringData+2*len(units)+8)
	b.half(o, stringLength, uint32(len(units)))
	for i, u := range units {
		binary.LittleEndian.PutUint16(b.bytes[o-1+stringData-base+uint64(2*i):], u)
	}
	return o
}

// indirect is a string that has other words instead of characters.
func (b *builder) indirect(kind uint16, length int, words ...uint64) uint64 {
	o := b.object(kind|stringOneByte, 40)
	b.half(o, stringLength, uint32(length))
	b.set(o, stringData, words...)
	return o
}

// script is one with a source.
func (b *builder) script(name, source string) uint64 {
	o := b.object(typeScript, scriptBytes)
	b.set(o, scriptSource, b.text(source), b.text(name), 0)
	b.set(o, scriptID, smiOf(77))
	return o
}

// scope is the ScopeInfo of a function with so many locals.
func (b *builder) scope(name, inferred string, position, locals int) uint64 {
	words := []uint64{4 | 1<<14, 0, smiOf(locals)}
	if name != "" {
		words[0] |= 3 << 12
	}
	if b.l.release.early {
		words = append(words, smiOf(position), smiOf(position+10))
	} else {
		words[0] <<= 32
	}
	if locals < maxInlineNames {
		words = append(words, make([]uint64, locals)...)
	} else {
		words = append(words, 0)
	}
	words = append(words, make([]uint64, locals)...)
	if name != "" {
		words = append(words, b.text(name), smiOf(-1))
	}
	if inferred != "" {
		words = append(words, b.text(inferred))
	} else {
		words = append(words, b.object(typeUndefined, 16))
	}
	if !b.l.release.early {
		words = append(words, smiOf(position), smiOf(position+10))
	}
	o := b.object(typeScope, 8+8*len(words)+32)
	b.set(o, 8, words...)
	return o
}

// bytecode is a BytecodeArray of instructions without operands, with positions.
func (b *builder) bytecode(instructions int, positions []byte) uint64 {
	o := b.object(typeBytecode, 128+instructions)
	b.set(o, arrayLength, smiOf(instructions))
	b.set(o, b.l.release.bytecodePositions, b.array(positions))
	for i := range instructions {
		b.bytes[o-1-base+uint64(b.l.release.bytecodeData)+uint64(i)] = 4 // no prefix
	}
	return o
}

func (b *builder) shared(name, script, data uint64, literal uint32) uint64 {
	o := b.object(typeShared, sharedBytes)
	b.set(o, b.l.release.data, data)
	b.set(o, b.l.release.name, name)
	b.set(o, b.l.release.script, script)
	b.half(o, b.l.release.id, literal)
	return o
}

// code is a Code of a kind.
func (b *builder) code(kind uint8, deopt, positions uint64) uint64 {
	o := b.object(typeCode, 96)
	r := &b.l.release
	b.set(o, r.deopt, deopt)
	b.set(o, r.positions, positions)
	b.set(o, r.start, b.alloc(2000))
	b.half(o, r.flags, uint32(kind)|0x130)
	b.half(o, r.size, 1000)
	return o
}

func (b *builder) heap() *heap { return &heap{mem: b.memory, Layout: b.l} }

// table makes a source position table of offsets and positions in turn.
func (b *builder) table(entries ...int) (t []byte) {
	at, pos := -1, 0
	for i := 0; i < len(entries); i += 2 {
		d := entries[i] - at
		if b.l.release.flagged {
			d <<= 1
		}
		if i%4 == 2 {
			d = -d - 1
		}
		t = appendSigned(t, int64(d))
		t = appendSigned(t, int64(entries[i+1]-pos))
		at, pos = entries[i], entries[i+1]
	}
	return t
}

func appendSigned(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, uint64(v<<1^v>>63))
}

// sourcePosition makes a SourcePosition.
func sourcePosition(offset, inlining int) int { return (offset+1)<<1 | (inlining+1)<<31 }
