package v8js

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of what is read of strings.
const (
	maxNameChars = 1024
	maxIndirect  = 8  // strings that stand for another
	maxPieces    = 64 // of a string that was put together
)

// characters are consecutive ones in memory.
type characters struct {
	addr uint64
	n    int
	wide bool // 2 bytes each
}

// string is one of a heap: characters, or two others.
type pieces struct {
	characters
	first, second uint64
	n             int
}

// resolve goes to the characters of a string, by way of those that stand for others.
func (h *heap) resolve(object uint64) (pieces, error) {
	skip, n := 0, -1
	for range maxIndirect {
		at, t, err := h.typeOf(object)
		if err != nil {
			return pieces{}, err
		}
		if t >= firstNonstring {
			return pieces{}, gone("string")
		}
		var head [32]byte
		size := 24 // the shortest that is followed
		if r := t & stringRepresentation; r == stringSliced || r == stringCons || r == stringExternal {
			size = 32
		}
		if err := h.read(head[:size], at, 0); err != nil {
			return pieces{}, err
		}
		length := int(binary.LittleEndian.Uint32(head[stringLength:]))
		if n < 0 {
			n = length
		}
		if length < skip+n {
			return pieces{}, gone("string")
		}
		p := pieces{n: n, characters: characters{n: n, wide: t&stringOneByte == 0}}
		switch t & stringRepresentation {
		case stringSequential:
			p.addr = at&^3 + stringData
		case stringExternal:
			if t&stringUncached != 0 {
				return pieces{}, gone("cached string")
			}
			p.addr = h.lead(head[:], at, externalData)
		case stringThin:
			object = h.lead(head[:], at, stringData)
			continue
		case stringSliced:
			from := word(head[:], slicedOffset)
			if !isSmi(from) || smi(from) < 0 {
				return pieces{}, gone("string")
			}
			skip += int(smi(from))
			object = h.lead(head[:], at, stringData)
			continue
		case stringCons:
			if skip != 0 {
				return pieces{}, gone("string")
			}
			p.first, p.second = h.lead(head[:], at, stringData), h.lead(head[:], at, consSecond)
			return p, nil
		default:
			return pieces{}, gone("string")
		}
		if p.wide {
			skip *= 2
		}
		p.addr += uint64(skip)
		return p, nil
	}
	return pieces{}, gone("string")
}

// text returns a string, of a long one so many characters, as valid UTF-8 for people: what
// does not belong into a line is replaced.
func (h *heap) text(object uint64, maxChars int) (string, error) {
	var to []uint16
	left := maxPieces
	err := h.gather(object, maxChars, &left, &to)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, r := range utf16.Decode(to) {
		if r < ' ' || r == 0x7f {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String(), nil
}

// gather appends characters of a string until there are so many.
func (h *heap) gather(object uint64, maxChars int, left *int, to *[]uint16) error {
	p, err := h.resolve(object)
	if err != nil {
		return err
	}
	if *left--; *left < 0 {
		return gone("simple string")
	}
	if p.first != 0 {
		if err := h.gather(p.first, maxChars, left, to); err != nil || len(*to) >= maxChars {
			return err
		}
		return h.gather(p.second, maxChars, left, to)
	}
	n := min(p.n, maxChars-len(*to))
	if !p.wide {
		b := make([]byte, n)
		if err := h.readAt(b, p.addr); err != nil {
			return err
		}
		for _, c := range b {
			*to = append(*to, uint16(c))
		}
		return nil
	}
	b := make([]byte, 2*n)
	if err := h.readAt(b, p.addr); err != nil {
		return err
	}
	for i := range n {
		*to = append(*to, binary.LittleEndian.Uint16(b[2*i:]))
	}
	return nil
}
