package v8

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
)

// Bounds of what is read of code.
const (
	maxTableBytes    = 256 << 10
	maxInlined       = 512 // functions
	maxInlinings     = 4096
	maxInlineDepth   = 32
	inliningBytes    = 16 // InliningPosition: position, number of the function
	notInlined       = -1
	codeHeaderBytes  = 64
	maxBytecodeBytes = 1 << 20
)

// code is a Code object.
type code struct {
	at, start, deopt, positions uint64
	size                        uint32
	kind                        uint8
}

// hash makes that of a function one of its code.
func (c *code) hash(of uint64) uint64 { return mix(of, c.start) }

func (h *heap) readCode(object uint64) (code, error) {
	at, err := h.of(object, h.types.code, "Code")
	if err != nil {
		return code{}, err
	}
	var b [codeHeaderBytes]byte
	if err := h.read(b[:], at, 0); err != nil {
		return code{}, err
	}
	r := &h.release
	return code{
		at:        at,
		start:     word(b[:], int(r.start)),
		deopt:     word(b[:], int(r.deopt)),
		positions: word(b[:], int(r.positions)),
		size:      binary.LittleEndian.Uint32(b[r.size:]),
		kind:      b[r.flags] & codeKindMask,
	}, nil
}

// optimized returns the function that a Code of an optimizing compiler is of.
func (h *heap) optimized(c *code) (shared, error) {
	if c.kind <= h.release.baseline {
		return shared{}, gone("optimized code")
	}
	deopt, err := h.of(c.deopt, h.process.ListType, "deoptimization data")
	if err != nil {
		return shared{}, err
	}
	object, err := h.word(deopt, uint64(h.process.DeoptShared))
	if err != nil {
		return shared{}, err
	}
	return h.unwrapped(object)
}

// unwrapped reads the SharedFunctionInfo that code refers to, maybe by a wrapper.
func (h *heap) unwrapped(object uint64) (shared, error) {
	at, t, err := h.typeOf(object)
	if err != nil {
		return shared{}, err
	}
	if h.release.wrapped && t == h.types.sharedInner {
		if at, err = h.word(at, 8); err != nil {
			return shared{}, err
		}
	}
	return h.readShared(at)
}

// An inlining is a place where a function was put into another.
type inlining struct {
	function int32 // in compiled.functions
	line     int32 // of the call
	caller   int32 // the inlining that the call is in; -1: none
}

// A place is what the code from an offset on came from.
type place struct {
	offset   uint32
	line     int32
	inlining int32 // -1: the function itself
}

// compiled is code of an optimizing compiler.
type compiled struct {
	functions []named // the first is the one that was compiled
	inlinings []inlining
	places    []place
}

// Bytes implements langruntime.Function.
func (c *compiled) Bytes() int {
	n := int(unsafe.Sizeof(*c)) + cap(c.inlinings)*int(unsafe.Sizeof(inlining{})) +
		cap(c.places)*int(unsafe.Sizeof(place{})) + cap(c.functions)*int(unsafe.Sizeof(named{}))
	for i := range c.functions {
		n += c.functions[i].bytes()
	}
	return n
}

// Frames implements langruntime.Function.
func (c *compiled) Frames(to []langruntime.Frame, position uint32) []langruntime.Frame {
	line, in := int32(0), int32(-1)
	if position > 0 {
		if p := c.placeAt(position - 1); p != nil {
			line, in = p.line, p.inlining
		}
	}
	for depth := 0; in >= 0 && int(in) < len(c.inlinings) && depth < maxInlineDepth; depth++ {
		i := &c.inlinings[in]
		to = append(to, c.functions[i.function].frame(int(line)))
		line, in = i.line, i.caller
	}
	return append(to, c.functions[0].frame(int(line)))
}

// placeAt returns what the instruction at an offset came from.
func (c *compiled) placeAt(offset uint32) *place {
	var found *place
	for i := range c.places {
		if c.places[i].offset > offset {
			break
		}
		found = &c.places[i]
	}
	return found
}

// readOptimized reads a Code of an optimizing compiler.
func (p *process) readOptimized(h *heap, at uint64, cookie uint32) (langruntime.Function, uint64, error) {
	c, err := h.readCode(at)
	if err != nil {
		return nil, 0, err
	}
	outer, err := h.optimized(&c)
	if err != nil {
		return nil, 0, err
	}
	hash := c.hash(outer.hash)
	if cookieOf(hash) != cookie {
		return nil, 0, fmt.Errorf("%w: another one is there", langruntime.ErrGone)
	}
	f := &compiled{functions: make([]named, 1)}
	of := []*script{nil}
	if f.functions[0], of[0], err = p.name(h, &outer); err != nil {
		return nil, 0, err
	}
	literals, err := p.inlined(h, &c, f, &of)
	if err != nil {
		return nil, 0, err
	}
	raw, err := h.inlinings(&c)
	if err != nil {
		return nil, 0, err
	}
	for _, r := range raw {
		i := inlining{function: 0, caller: -1}
		if r.function >= 0 && int(r.function) < len(literals) {
			i.function = literals[r.function]
		} else {
			i.function = -1
		}
		i.caller, i.line = position(r.position).in(), 0
		f.inlinings = append(f.inlinings, i)
	}
	f.inlinings = soundInlinings(f.inlinings)
	for k := range f.inlinings {
		f.inlinings[k].line = lineIn(f, of, f.inlinings[k].caller, position(raw[k].position))
	}
	table, err := h.bytes(c.positions, maxTableBytes)
	if err != nil {
		return nil, 0, err
	}
	for t := (positionTable{b: table, flagged: h.release.flagged}); t.next(); {
		pos := position(t.position)
		in := pos.in()
		if int(in) >= len(f.inlinings) {
			continue
		}
		pl := place{offset: t.offset(), line: lineIn(f, of, in, pos), inlining: in}
		if n := len(f.places); n > 0 && f.places[n-1].line == pl.line && f.places[n-1].inlining == pl.inlining {
			continue
		}
		f.places = append(f.places, pl)
	}
	return f, hash, nil
}

// lineIn returns the line of a position in the function that an inlining is of.
func lineIn(f *compiled, of []*script, in int32, pos position) int32 {
	function := int32(0)
	if in >= 0 && int(in) < len(f.inlinings) {
		function = f.inlinings[in].function
	}
	if of[function] == nil || pos.external() || pos.offset() < 0 {
		return 0
	}
	return int32(of[function].line(pos.offset()))
}

// soundInlinings leaves only callers that come before what they call: V8 numbers them so, and
// nothing goes in circles then.
func soundInlinings(all []inlining) []inlining {
	for i := range all {
		if all[i].function < 0 || int(all[i].caller) >= i {
			return all[:i]
		}
	}
	return all
}

type rawInlining struct {
	position uint64
	function int32
}

// inlinings reads where functions were put into code.
func (h *heap) inlinings(c *code) (raw []rawInlining, err error) {
	object, err := h.word(c.deopt, arrayData+8*uint64(h.release.inline))
	if err != nil {
		return nil, err
	}
	b, err := h.bytes(object, maxInlinings*inliningBytes)
	if err != nil {
		return nil, err
	}
	for ; len(b) >= inliningBytes; b = b[inliningBytes:] {
		raw = append(raw, rawInlining{word(b, 0), int32(word(b, 8))})
	}
	return raw, nil
}

// inlined reads the functions that were put into code, and returns their numbers.
func (p *process) inlined(h *heap, c *code, f *compiled, of *[]*script) (numbers []int32, err error) {
	count, err := h.word(c.deopt, arrayData+8*deoptInlined)
	if err != nil {
		return nil, err
	}
	if !isSmi(count) || smi(count) < 0 {
		return nil, gone("deoptimization data")
	}
	if smi(count) == 0 {
		return nil, nil
	}
	array, err := h.word(c.deopt, arrayData+8*uint64(h.release.deoptLiterals))
	if err != nil {
		return nil, err
	}
	at, t, err := h.typeOf(array)
	if err != nil {
		return nil, err
	}
	if t != h.types.weakArray && t != h.types.trustedWeakArray {
		return nil, gone("literals")
	}
	n, err := h.length(at, min(int(smi(count)), maxInlined))
	if err != nil {
		return nil, err
	}
	words := make([]byte, 8*n)
	if err := h.read(words, at, arrayData); err != nil {
		return nil, err
	}
	for i := range n {
		s, err := h.unwrapped(word(words, 8*i))
		if err != nil {
			return nil, err
		}
		name, script, err := p.name(h, &s)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, int32(len(f.functions)))
		f.functions = append(f.functions, name)
		*of = append(*of, script)
	}
	return numbers, nil
}
