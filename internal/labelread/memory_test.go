package labelread

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

var errFault = errors.New("bad address")

// memory is regions of bytes by their first address.
type memory map[uint64][]byte

// ReadAt implements tlsresolve.Memory.
func (m memory) ReadAt(p []byte, addr uint64) error {
	for _, start := range slices.Sorted(maps.Keys(m)) {
		if off := addr - start; addr >= start && off <= uint64(len(m[start])) && uint64(len(p)) <= uint64(len(m[start]))-off {
			copy(p, m[start][off:])
			return nil
		}
	}
	return errFault
}

// words are 64-bit words, one after the other.
func words(values ...uint64) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// contextRecord is a thread context record.
func contextRecord(valid byte, size int, attrs string) []byte {
	b := append(make([]byte, 0, contextBytes+len(attrs)), "0123456789abcdefABCDEFGH"...)
	b = append(b, valid, 1)
	b = binary.LittleEndian.AppendUint16(b, uint16(size))
	return append(b, attrs...)
}
