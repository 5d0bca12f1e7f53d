package v8js

import "encoding/binary"

// A frame that waits for a call while its code becomes invalid goes on at an exit: V8 puts the
// exit's address in place of the return address (src/deoptimizer/deoptimizer.cc). Exits are
// behind the other instructions, those of checks before those of calls, in the order of the
// entries of the deoptimization data, which say where the first one is and how many there are of
// both. All have one instruction: V8 is built without control-flow integrity in Node.js. No
// source position covers them.
const exitBytes = 4

// exits are those of a Code.
type exits struct {
	first uint32   // offset; of those of checks
	calls uint32   // offset of those of calls
	limit uint32   // offset behind the last one
	backs []uint32 // of each of calls: where the code would have gone on; 0: not known
}

// back returns the position at which a frame waits that goes on at a position. 0, where nothing
// is known, is that of an exit whose call is not, or of a check.
func (e *exits) back(position uint32) uint32 {
	if position >= e.limit || position < e.calls && position <= e.first {
		return position
	}
	if i := int(position-e.calls) / exitBytes; position >= e.calls && i < len(e.backs) {
		return e.backs[i]
	}
	return 0
}

// readExits reads where the exits are, and returns how many there are of checks. There are none
// in what makes no sense.
func (r *codeReader) readExits() (checks uint32, err error) {
	var b [8 * 3]byte
	if err := r.read(b[:], r.code.deopt, arrayData+8*(uint64(r.release.inline)+1)); err != nil {
		return 0, err
	}
	var n [3]uint32 // the offset of the first one; how many there are of checks, of calls
	for i := range n {
		if !isSmi(word(b[:], 8*i)) {
			return 0, nil
		}
		n[i] = binary.LittleEndian.Uint32(b[8*i+4:])
	}
	room := (r.code.size - min(n[0], r.code.size)) / exitBytes
	if n[1] > room || n[2] > room-n[1] {
		return 0, nil
	}
	calls := n[0] + exitBytes*n[1]
	r.to.exits = exits{n[0], calls, calls + exitBytes*n[2], make([]uint32, min(n[2], maxCalls))}
	return n[1], nil
}
