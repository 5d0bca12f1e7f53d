package v8js

import (
	"sort"
	"unsafe"
)

// lines tells lines by offsets in code, each from an offset on. Sorted, none twice in a row.
type lines []lineFrom

type lineFrom struct {
	offset uint32
	line   int32 // 0: not known
}

// at returns the line at an offset.
func (l lines) at(offset uint32) (line int, ok bool) {
	n := sort.Search(len(l), func(i int) bool { return l[i].offset > offset })
	if n == 0 {
		return 0, false
	}
	return int(l[n-1].line), true
}

func (l lines) bytes() int { return cap(l) * int(unsafe.Sizeof(lineFrom{})) }

// add appends the line from an offset on.
func (l lines) add(offset uint32, line int32) lines {
	n := len(l)
	if n > 0 && (l[n-1].line == line || l[n-1].offset > offset) {
		return l
	}
	return append(l, lineFrom{offset, line})
}

// until makes the lines from an offset on unknown.
func (l lines) until(offset uint32) lines {
	n := sort.Search(len(l), func(i int) bool { return l[i].offset >= offset })
	return l[:n].add(offset, 0)
}

// bytecodeLines returns the lines of a BytecodeArray; nil if V8 has not noted them.
func (h *heap) bytecodeLines(bytecode uint64, of *script) (lines, error) {
	object, err := h.word(bytecode, uint64(h.release.bytecodePositions))
	if err != nil {
		return nil, err
	}
	_, t, err := h.typeOf(object)
	if err != nil {
		return nil, err
	}
	if t != h.types.byteArray && t != h.types.trustedByteArray {
		return nil, nil // undefined, or an exception that says why there is none
	}
	table, cut, err := h.bytes(object, maxTableBytes)
	if err != nil {
		return nil, err
	}
	l, last := lines{}, uint32(0)
	for t := (positionTable{b: table, flagged: h.release.flagged}); t.next(); {
		last = t.offset()
		l = l.add(last, int32(of.line(position(t.position).offset())))
	}
	if cut { // where the last one ends is not known
		l = l.until(last)
	}
	if h.tableLines += len(l); h.tableLines > maxTableLines {
		return nil, tooMuch()
	}
	return l, nil
}

// baselineLines returns the lines of code of the baseline compiler, from those of the bytecode.
// Its table has the length of the code before the first bytecode, then that of each bytecode.
func (h *heap) baselineLines(c *code, bytecode uint64, of lines) (lines, error) {
	if len(of) == 0 {
		return nil, nil
	}
	n, err := h.length(bytecode, maxBytecodeBytes)
	if err != nil {
		return nil, err
	}
	code := make([]byte, n)
	if err := h.read(code, bytecode, uint64(h.release.bytecodeData)); err != nil {
		return nil, err
	}
	table, cut, err := h.bytes(c.positions, maxTableBytes)
	if err != nil {
		return nil, err
	}
	var l lines
	at, last := uint32(0), uint32(0)
	pc := unsigned(&table)
	for len(table) > 0 && int(at) < len(code) {
		size := h.release.bytecodeLength(code[at:])
		if size == 0 || pc > uint64(c.size) {
			break
		}
		line, _ := of.at(at)
		last = uint32(pc)
		l = l.add(last, int32(line))
		pc += unsigned(&table)
		at += uint32(size)
	}
	if cut || n == maxBytecodeBytes { // where the last one ends is not known
		l = l.until(last)
	}
	return l, nil
}
