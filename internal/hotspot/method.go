package hotspot

import (
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Bounds of what is read of one method.
const (
	maxNameBytes  = 1024
	maxTableBytes = 64 << 10
	maxLines      = 1 << 14
)

// hasLineNumbers is ConstMethod::_has_linenumber_table.
const hasLineNumbers = 1

// methodHead is what a cookie is made of, and what leads to the rest.
type methodHead struct {
	cookie                 uint32
	constMethod, constants uint64
	holder                 uint64 // symbol of the class's name
	codeSize, name         uint16
	flags, words           uint32 // words: size of the ConstMethod
}

// head reads a Method as the sampling programs do: read_hotspot_method of hotspotread.bpf.h.
func (p *process) head(r *reader, method uint64) methodHead {
	h := methodHead{constMethod: r.word(method + uint64(p.constMethod))}
	b := make([]byte, p.constBytes+8)
	r.bytes(b[:p.constBytes], h.constMethod)
	h.constants = word(b, p.constants)
	h.codeSize, h.name = short(b, p.codeSize), short(b, p.nameIndex)
	h.flags, h.words = half(b, p.constFlags), half(b, p.constSize)
	indices := uint64(h.codeSize) | uint64(h.name)<<16 | uint64(short(b, p.signatureIndex))<<32 | uint64(short(b, p.idnum))<<48
	klass := r.word(h.constants + uint64(p.poolHolder))
	h.holder = r.word(klass + uint64(p.klassName))
	hash := record.Mix(method, h.constMethod)
	hash = record.Mix(hash, h.constants)
	hash = record.Mix(hash, indices)
	hash = record.Mix(hash, h.holder)
	hash = record.Mix(hash, r.word(h.holder)&^0xffff) // but for the number of references
	h.cookie = uint32(hash >> 32)
	return h
}

// method is one that was read.
type method struct {
	name, file string
	lines      []lineEntry
}

func (m *method) bytes() int {
	return int(unsafe.Sizeof(*m)) + len(m.name) + len(m.file) + cap(m.lines)*int(unsafe.Sizeof(lineEntry{}))
}

// Frames implements langruntime.Function.
func (m *method) Frames(to []langruntime.Frame, position uint32) []langruntime.Frame {
	return append(to, langruntime.Frame{Name: m.name, File: m.file, Line: lineOf(m.lines, int(position)-1)})
}

// Bytes implements langruntime.Function.
func (m *method) Bytes() int { return m.bytes() }

// readMethod reads a Method that the interpreter runs.
func (p *process) readMethod(mem langruntime.Memory, object uint64, cookie uint32) (langruntime.Function, error) {
	r := &reader{mem: mem}
	before := p.head(r, object)
	if r.err != nil {
		return nil, r.err
	}
	if before.cookie != cookie {
		return nil, fmt.Errorf("%w: another method is there", langruntime.ErrGone)
	}
	m := p.contents(r, &before)
	after := p.head(r, object)
	if r.err != nil {
		return nil, r.err
	}
	if after != before {
		return nil, fmt.Errorf("%w: it was replaced", langruntime.ErrGone)
	}
	return m, nil
}

// contents reads what a head leads to.
func (p *process) contents(r *reader, h *methodHead) *method {
	pool := make([]byte, p.poolEnd+8)
	r.bytes(pool[:p.poolEnd], h.constants)
	entry := func(index uint16) string {
		if index == 0 || uint32(index) >= half(pool, p.poolLength) {
			return ""
		}
		return p.symbol(r, r.word(h.constants+uint64(p.poolEnd)+8*uint64(index)))
	}
	m := &method{file: entry(short(pool, p.poolSourceFile))}
	m.name = className(p.symbol(r, h.holder)) + "." + entry(h.name)
	if h.flags&hasLineNumbers == 0 || r.err != nil {
		return m
	}
	from := uint64(p.constBytes) + uint64(h.codeSize)
	end := 8 * uint64(h.words)
	if from >= end {
		return m
	}
	table := make([]byte, min(end-from, maxTableBytes))
	r.bytes(table, h.constMethod+from)
	m.lines = decodeLines(stream{b: table, excess: p.excess()})
	return m
}

// symbolReferences are the bits of Symbol::_hash_and_refcount that count.
const symbolReferences = 0xffff

// symbol reads a Symbol as text for people: what does not belong into a line is replaced.
func (p *process) symbol(r *reader, addr uint64) string {
	head := make([]byte, p.symbolLength+4)
	if r.bytes(head, addr); r.err == nil && half(head, 0)&symbolReferences == 0 {
		r.err = fmt.Errorf("%w: a name that nothing refers to", langruntime.ErrGone)
	}
	b := make([]byte, min(short(head, p.symbolLength), maxNameBytes))
	r.bytes(b, addr+uint64(p.symbolBody))
	return text(b)
}

func text(b []byte) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return utf8.RuneError
		}
		return c
	}, strings.ToValidUTF8(string(b), string(utf8.RuneError)))
}

// className makes a class's name that of the language. A hidden class's ends with an address,
// which says nothing.
func className(internal string) string {
	if at := strings.LastIndexAny(internal, "/+"); at >= 0 && strings.HasPrefix(internal[at+1:], "0x") {
		internal = internal[:at]
	}
	return strings.ReplaceAll(internal, "/", ".")
}
