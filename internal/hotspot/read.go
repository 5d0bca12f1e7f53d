package hotspot

import (
	"encoding/binary"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
)

// Bounds of what is read for one object: a process may have made up what leads to more.
const (
	maxReads     = 1 << 15
	maxReadBytes = 8 << 20
)

// reader reads memory of a process. After an error all is 0.
type reader struct {
	mem         langruntime.Memory
	reads, read int // calls, bytes
	err         error
}

// bytes fills p.
func (r *reader) bytes(p []byte, addr uint64) {
	if r.err != nil || len(p) == 0 {
		clear(p)
		return
	}
	r.reads++
	r.read += len(p)
	if r.reads > maxReads || r.read > maxReadBytes {
		r.err = fmt.Errorf("%w: it leads to too much", langruntime.ErrGone)
		clear(p)
		return
	}
	if r.err = r.mem.ReadAt(p, addr); r.err != nil {
		r.err = fmt.Errorf("%w: %w", langruntime.ErrGone, r.err)
		clear(p)
	}
}

func (r *reader) word(addr uint64) uint64 {
	var b [8]byte
	r.bytes(b[:], addr)
	return binary.LittleEndian.Uint64(b[:])
}

func (r *reader) half(addr uint64) uint32 {
	var b [4]byte
	r.bytes(b[:], addr)
	return binary.LittleEndian.Uint32(b[:])
}

// readUint reads a number of so many bytes.
func readUint(mem langruntime.Memory, addr uint64, size int) (uint64, error) {
	var b [8]byte
	if err := mem.ReadAt(b[:size], addr); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

func word(b []byte, at int) uint64  { return binary.LittleEndian.Uint64(b[at:]) }
func half(b []byte, at int) uint32  { return binary.LittleEndian.Uint32(b[at:]) }
func short(b []byte, at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
func signed(b []byte, at int) int   { return int(int32(half(b, at))) }
