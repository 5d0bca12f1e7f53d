package cpython

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
)

// state is PyASCIIObject.state from its kind on: 3 bits of kind, 1 of compact, 1 of ASCII.
type state uint8

// stateOf drops what stands before the kind: 2 bits of interned, which later versions have as
// 16. The kind is not 0.
func stateOf(word uint32) state {
	if word&0xfffc != 0 {
		return state(word >> 2 & 31)
	}
	return state(word >> 16 & 31)
}

func (s state) charBytes() uint64 { return uint64(s & 7) }
func (s state) compact() bool     { return s&8 != 0 }
func (s state) ascii() bool       { return s&16 != 0 }

// readText reads a compact string, of a long one so many characters, as valid UTF-8 for
// people: what does not belong into a line is replaced.
func (l *Layout) readText(mem langruntime.Memory, object uint64, maxChars uint64) (string, error) {
	var head [24]byte
	if err := read(mem, head[:], object+l.headerBytes()); err != nil {
		return "", err
	}
	s := stateOf(uint32(word(head[:], textState)))
	size := s.charBytes()
	if !s.compact() || (size != 1 && size != 2 && size != 4) || s.ascii() && size != 1 {
		return "", fmt.Errorf("%w: no string", langruntime.ErrGone)
	}
	addr := object + uint64(l.process.WideOffset)
	if s.ascii() {
		addr = object + uint64(l.process.TextOffset)
	}
	b := make([]byte, size*min(word(head[:], 0), maxChars))
	if err := read(mem, b, addr); err != nil {
		return "", err
	}
	var to strings.Builder
	for ; len(b) > 0; b = b[size:] {
		r := rune(b[0])
		switch size {
		case 2:
			r = rune(binary.LittleEndian.Uint16(b))
		case 4:
			r = rune(min(binary.LittleEndian.Uint32(b), utf8.MaxRune+1))
		}
		if r < ' ' || r == 0x7f {
			r = utf8.RuneError
		}
		to.WriteRune(r) // what is no character becomes RuneError
	}
	return to.String(), nil
}
