package v8js

import (
	"encoding/binary"
	"fmt"
	"sort"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Bounds of what is read of code.
const (
	maxTableBytes    = 256 << 10
	maxInlined       = 512 // functions
	maxInlinings     = 4096
	maxFrames        = 128 // functions within each other, at one position
	inliningBytes    = 16  // InliningPosition: position, number of the function
	itself           = -1  // number of the function that is compiled, put into itself (kNotInlinedIndex)
	codeHeaderBytes  = 64
	maxBytecodeBytes = 1 << 20
	maxLiterals      = 16 << 10
)

// code is a Code object.
type code struct {
	at, start, deopt, positions uint64
	size                        uint32
	kind                        uint8
}

// hash makes that of a function one of its code, as v8_code_hash of v8.bpf.h does.
func (c *code) hash(of uint64) uint64 {
	return record.Mix(record.Mix(of, c.start), uint64(c.size)<<32|uint64(c.kind))
}

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
		deopt:     h.lead(b[:], at, uint64(r.deopt)),
		positions: h.lead(b[:], at, uint64(r.positions)),
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
	function int32 // in compiled.functions; -1: not known
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
	calls     []call
	frames    []callFrame // of calls
	exits     exits
	partial   bool // V8 has not noted lines of some call yet
}

// Partial implements langruntime.Partial.
func (c *compiled) Partial() bool { return c.partial }

// Bytes implements langruntime.Function.
func (c *compiled) Bytes() int {
	n := int(unsafe.Sizeof(*c)) + cap(c.inlinings)*int(unsafe.Sizeof(inlining{})) +
		cap(c.places)*int(unsafe.Sizeof(place{})) + cap(c.functions)*int(unsafe.Sizeof(named{})) +
		cap(c.calls)*int(unsafe.Sizeof(call{})) + cap(c.frames)*int(unsafe.Sizeof(callFrame{})) +
		cap(c.exits.backs)*int(unsafe.Sizeof(uint32(0)))
	for i := range c.functions {
		n += c.functions[i].bytes()
	}
	return n
}

// Frames implements langruntime.Function. A position that is a return address is that of a
// call; no instruction begins within one.
func (c *compiled) Frames(to []langruntime.Frame, position uint32) []langruntime.Frame {
	position = c.exits.back(position)
	if frames := c.callAt(position); frames != nil {
		for _, f := range frames {
			to = append(to, c.functions[f.function].frame(int(f.line)))
		}
		return to
	}
	line, in := int32(0), int32(-1)
	if position > 0 {
		if p := c.placeAt(position - 1); p != nil {
			line, in = p.line, p.inlining
		}
	}
	for depth := 0; in >= 0 && int(in) < len(c.inlinings) && depth < maxFrames-1; depth++ {
		i := &c.inlinings[in]
		to = append(to, c.functions[i.function].frame(int(line)))
		line, in = i.line, i.caller
	}
	return append(to, c.functions[0].frame(int(line)))
}

// placeAt returns what the instruction at an offset came from.
func (c *compiled) placeAt(offset uint32) *place {
	n := sort.Search(len(c.places), func(i int) bool { return c.places[i].offset > offset })
	if n == 0 {
		return nil
	}
	return &c.places[n-1]
}

// codeReader reads a Code of an optimizing compiler.
type codeReader struct {
	*heap
	process *process
	code    code
	to      *compiled
	// Of each function in to.functions.
	scripts    []*script
	bytecodes  []uint64
	linesOf    []lines // read for calls only
	linesRead  []bool
	byShared   map[uint64]int32
	byLiteral  map[uint64]int32 // -1: there were too many
	literals   []byte           // words
	literalsAt uint64
	inlined    int // so many literals are functions
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
	r := &codeReader{heap: h, process: p, code: c, to: &compiled{}, byShared: map[uint64]int32{}, byLiteral: map[uint64]int32{}}
	if _, err := r.function(&outer); err != nil {
		return nil, 0, err
	}
	for _, read := range []func() error{r.readLiterals, r.readInlinings, r.readPlaces, r.readCalls} {
		if err := read(); err != nil {
			return nil, 0, err
		}
	}
	return r.to, hash, nil
}

// function returns the number of a function, which is read if it was not; -1 if there are too many.
func (r *codeReader) function(s *shared) (int32, error) {
	if i, ok := r.byShared[s.at]; ok {
		return i, nil
	}
	if len(r.to.functions) > maxInlined {
		return -1, nil
	}
	name, script, err := r.process.name(r.heap, s)
	if err != nil {
		return -1, err
	}
	bytecode, _, err := r.bytecode(s.data)
	if err != nil {
		return -1, err
	}
	i := int32(len(r.to.functions))
	r.byShared[s.at] = i
	r.to.functions = append(r.to.functions, name)
	r.scripts, r.bytecodes = append(r.scripts, script), append(r.bytecodes, bytecode)
	r.linesOf, r.linesRead = append(r.linesOf, nil), append(r.linesRead, false)
	return i, nil
}

// ofLiteral returns the number of the function that a literal refers to; -1 if there are too many.
// Calls and inlinings have the same few literals again and again.
func (r *codeReader) ofLiteral(n int32) (int32, error) {
	object := word(r.literals, 8*int(n))
	if i, ok := r.byLiteral[object]; ok {
		return i, nil
	}
	s, err := r.unwrapped(r.lead(r.literals, r.literalsAt, 8*uint64(n)))
	if err != nil {
		return -1, err
	}
	i, err := r.function(&s)
	r.byLiteral[object] = i
	return i, err
}

// literal returns the number of the function that a literal is, with its lines; -1 if it is none.
func (r *codeReader) literal(n int32) (int32, error) {
	if n < 0 || int(n) >= len(r.literals)/8 {
		return -1, nil
	}
	if !isObject(word(r.literals, 8*int(n))) {
		return -1, nil
	}
	i, err := r.ofLiteral(n)
	if err != nil || i < 0 || r.linesRead[i] {
		return i, err
	}
	r.linesRead[i] = true
	if r.scripts[i] != nil && r.bytecodes[i] != 0 {
		r.linesOf[i], err = r.bytecodeLines(r.bytecodes[i], r.scripts[i])
		r.to.partial = r.to.partial || r.linesOf[i] == nil
	}
	return i, err
}

// readLiterals reads the literals of the code, of which the first are functions that were put
// into it.
func (r *codeReader) readLiterals() error {
	count, err := r.word(r.code.deopt, arrayData+8*deoptInlined)
	if err != nil {
		return err
	}
	if !isSmi(count) || smi(count) < 0 {
		return gone("deoptimization data")
	}
	array, err := r.word(r.code.deopt, arrayData+8*uint64(r.release.deoptLiterals))
	if err != nil {
		return err
	}
	at, t, err := r.typeOf(array)
	if err != nil {
		return err
	}
	if t != r.types.weakArray && t != r.types.trustedWeakArray {
		if smi(count) == 0 {
			return nil
		}
		return gone("literals")
	}
	n, err := r.length(at, maxLiterals)
	if err != nil {
		return err
	}
	r.inlined = min(int(smi(count)), n)
	r.literals, r.literalsAt = make([]byte, 8*n), at+arrayData
	return r.read(r.literals, at, arrayData)
}

// readInlinings reads where functions were put into the code. V8 numbers a caller before what
// it calls; what does not is left out with all that follows, so that nothing goes in circles.
// Of a chain that is too long the middle would be missing: there is no such code.
func (r *codeReader) readInlinings() error {
	object, err := r.word(r.code.deopt, arrayData+8*uint64(r.release.inline))
	if err != nil {
		return err
	}
	b, _, err := r.bytes(object, maxInlinings*inliningBytes)
	if err != nil {
		return err
	}
	var frames []int // of each
	for ; len(b) >= inliningBytes; b = b[inliningBytes:] {
		pos := position(word(b, 0))
		n := int32(word(b, 8))
		if n < itself || int(n) >= r.inlined || int(pos.in()) >= len(r.to.inlinings) {
			return nil
		}
		function := int32(0)
		if n != itself {
			if function, err = r.ofLiteral(n); err != nil || function < 0 {
				return err
			}
		}
		within := 1 // the function itself
		if in := pos.in(); in >= 0 {
			within = frames[in]
		}
		if within == maxFrames {
			return tooMuch()
		}
		frames = append(frames, within+1)
		r.to.inlinings = append(r.to.inlinings, inlining{function, r.line(pos), pos.in()})
	}
	return nil
}

// line returns that of a position, 0 if it is not known.
func (r *codeReader) line(pos position) int32 {
	function := int32(0)
	if in := pos.in(); in >= 0 {
		function = r.to.inlinings[in].function
	}
	if r.scripts[function] == nil || pos.external() {
		return 0
	}
	return int32(r.scripts[function].line(pos.offset()))
}

// readPlaces reads the source position table, whose offsets do not go back. Where the inlining is not known, nor is
// the line.
func (r *codeReader) readPlaces() error {
	table, cut, err := r.bytes(r.code.positions, maxTableBytes)
	if err != nil {
		return err
	}
	last := uint32(0)
	for t := (positionTable{b: table, flagged: r.release.flagged}); t.next(); {
		if t.offset() < last {
			return gone("source position table")
		}
		last = t.offset()
		p := place{offset: t.offset(), inlining: -1}
		if pos := position(t.position); int(pos.in()) < len(r.to.inlinings) {
			p.line, p.inlining = r.line(pos), pos.in()
		}
		if n := len(r.to.places); n > 0 && r.to.places[n-1].line == p.line && r.to.places[n-1].inlining == p.inlining {
			continue
		}
		r.to.places = append(r.to.places, p)
	}
	if cut { // where the last one ends is not known
		known := sort.Search(len(r.to.places), func(i int) bool { return r.to.places[i].offset >= last })
		r.to.places = append(r.to.places[:known], place{offset: last, inlining: -1})
	}
	return nil
}
