package unwind

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// windowBytes is how much of a section is held at a time, unless one entry is
// longer.
const windowBytes = 64 << 10

// entry is a CIE or an FDE.
type entry struct {
	off    uint64 // of its length in the section
	body   []byte // behind the length; valid until the next entry
	offset uint64 // of body in the section
	wide   bool   // 64-bit DWARF
}

// entries reads the entries of a section one after the other.
type entries struct {
	r       io.Reader
	buf     []byte // of which buf[at:end] is not used yet
	at, end int
	off     uint64 // of buf[at] in the section
	ended   bool   // the reader is at its end
	limit   uint64 // bytes of a section that are read

	terminated  bool // a zero length ends the section
	terminators int
	oversized   int // entries longer than maxEntryBytes, passed over
}

// newEntries reads from a reader that has one byte more than limit if the section
// is longer than that. size is that of the section, as far as it is known.
func newEntries(r io.Reader, terminated bool, size, limit uint64) *entries {
	return &entries{r: r, buf: make([]byte, min(windowBytes, max(size, 64))), terminated: terminated, limit: limit}
}

// need makes at least n bytes available and reports whether there are as many.
func (e *entries) need(n int) (bool, error) {
	if e.end-e.at >= n {
		return true, nil
	}
	if n > len(e.buf) {
		larger := make([]byte, min(max(n, 2*len(e.buf)), maxEntryBytes+16))
		e.end, e.at = copy(larger, e.buf[e.at:e.end]), 0
		e.buf = larger
	} else {
		e.end, e.at = copy(e.buf, e.buf[e.at:e.end]), 0
	}
	for e.end < n && !e.ended {
		k, err := e.r.Read(e.buf[e.end:])
		e.end += k
		if e.off+uint64(e.end-e.at) > e.limit {
			return false, &LimitError{"bytes of call frame information", e.limit}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return false, fmt.Errorf("read call frame information: %w", err)
			}
			e.ended = true
		}
	}
	return e.end-e.at >= n, nil
}

func (e *entries) skip(n int) { e.at, e.off = e.at+n, e.off+uint64(n) }

// next returns the next entry. ok is false at the end of the section, which an
// entry is too that goes on behind the section, or is too long.
func (e *entries) next() (x entry, ok bool, err error) {
	for {
		if ok, err := e.need(4); !ok || err != nil {
			return entry{}, false, err
		}
		x := entry{off: e.off}
		length := uint64(binary.LittleEndian.Uint32(e.buf[e.at:]))
		if length == 0 {
			if e.terminators++; e.terminated || e.terminators > maxTerminators {
				return entry{}, false, nil
			}
			// Linkers leave terminators between the parts of their input.
			e.skip(4)
			continue
		}
		head := 4
		if length == 0xffffffff {
			if ok, err := e.need(12); !ok || err != nil {
				return entry{}, false, err
			}
			length, head, x.wide = binary.LittleEndian.Uint64(e.buf[e.at+4:]), 12, true
		}
		e.skip(head)
		x.offset = e.off
		if length > maxEntryBytes {
			e.oversized++
			return entry{}, false, nil
		}
		if ok, err := e.need(int(length)); !ok || err != nil {
			return entry{}, false, err
		}
		x.body = e.buf[e.at : e.at+int(length) : e.at+int(length)]
		e.skip(int(length))
		return x, true, nil
	}
}
