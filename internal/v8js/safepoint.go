package v8js

import "encoding/binary"

// Maglev's deoptimization data have, instead of where code goes on behind a call, where it goes
// on if it has become invalid by then; which belongs to which is in the safepoint table, behind
// the instructions:
//
//	12.4, 12.9: length, configuration, numbers of slots; later a word more before: 16 bytes
//	entries: pc; number of the deoptimization plus 1, where it goes on plus 1; a byte; registers
//
// The configuration has, from bit 0: 1 bit whether there are deoptimizations, 3 bits each of the
// bytes of registers, of a pc and of a number.
const (
	safepointHeader = 16
	maxSafepoints   = maxCalls
)

type safepoint struct{ pc, trampoline uint32 }

// isMaglev reports whether Maglev has made the code.
func (r *codeReader) isMaglev() bool { return r.code.kind == r.release.baseline+1 }

// readSafepoints returns those of Maglev's calls, by the number of the deoptimization.
func (r *codeReader) readSafepoints() (map[uint32]safepoint, error) {
	if !r.isMaglev() {
		return nil, nil
	}
	var head [safepointHeader]byte
	table := r.code.start + uint64(r.code.size)
	if err := r.readAt(head[:], table); err != nil {
		return nil, err
	}
	at := 0
	if r.release.slotsFirst {
		at = 4
	}
	n := min(binary.LittleEndian.Uint32(head[at:]), maxSafepoints)
	config := binary.LittleEndian.Uint32(head[at+4:])
	registers, pc, number := int(config>>1&7), int(config>>4&7), int(config>>7&7)
	if config&1 == 0 || pc == 0 || pc > 4 || number == 0 || number > 4 {
		return nil, nil
	}
	size := 2*pc + number + 1 + registers
	b := make([]byte, int(n)*size)
	if err := r.readAt(b, table+safepointHeader); err != nil {
		return nil, err
	}
	all := map[uint32]safepoint{}
	for ; len(b) > 0; b = b[size:] {
		if i := littleEndian(b[pc : pc+number]); i > 0 {
			all[i-1] = safepoint{littleEndian(b[:pc]), littleEndian(b[pc+number:2*pc+number]) - 1}
		}
	}
	return all, nil
}

// littleEndian is a number of up to 4 bytes.
func littleEndian(b []byte) (v uint32) {
	for i, c := range b {
		v |= uint32(c) << (8 * i)
	}
	return v
}
