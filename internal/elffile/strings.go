package elffile

import "bytes"

const (
	// maxNameHits bounds the places where a name may occur in a string table.
	// Linkers store a string once, but a longer name may end with it.
	maxNameHits = 64

	// maxStringTableBytes bounds the string table that findName searches.
	maxStringTableBytes = 128 << 20

	// windowBytes is what one read of names fetches.
	windowBytes = 4 << 10
)

// findName returns the offsets in the string table at which name, with its
// terminating NUL, stands. Linkers let a name share the tail of a longer one,
// so it may be preceded by anything.
func (f *File) findName(t table, name string) ([]uint32, error) {
	if t.strSize > maxStringTableBytes {
		return nil, &FormatError{t.strOff, "size of string table", t.strSize}
	}
	pattern := append([]byte(name), 0)
	var hits []uint32
	buf := make([]byte, batchBytes)
	keep := uint64(0) // bytes at the start of buf carried over from the batch before
	for off := uint64(0); off < t.strSize; {
		n := min(batchBytes-keep, t.strSize-off)
		if err := f.read(buf[keep:keep+n], t.strOff+off); err != nil {
			return nil, err
		}
		b, base := buf[:keep+n], off-keep
		for at := 0; ; at++ {
			i := bytes.Index(b[at:], pattern)
			if i < 0 {
				break
			}
			at += i
			hits = append(hits, uint32(base)+uint32(at))
			if len(hits) == maxNameHits {
				return nil, &FormatError{t.strOff, "occurrences of a name in the string table", maxNameHits}
			}
		}
		off += n
		keep = min(uint64(len(pattern)-1), uint64(len(b)))
		copy(buf, b[uint64(len(b))-keep:])
	}
	return hits, nil
}

// window reads names of a string table without holding the table in memory.
// Linkers store names roughly in the order of the symbols, so that the next
// name is mostly in what was read for the one before.
type window struct {
	f   *File
	t   table
	off uint64 // of buf in the string table
	buf []byte
}

// at returns the name at an offset in the string table, valid until the next
// call; an empty one when the offset lies outside of the table. Names are cut
// at maxNameBytes.
func (w *window) at(offset uint32) ([]byte, error) {
	off := uint64(offset)
	if off >= w.t.strSize {
		return nil, nil
	}
	if off >= w.off && off < w.off+uint64(len(w.buf)) {
		rest := w.buf[off-w.off:]
		if i := bytes.IndexByte(rest, 0); i >= 0 {
			return rest[:min(i, maxNameBytes)], nil
		}
	}
	if w.buf == nil {
		w.buf = make([]byte, windowBytes)
	}
	w.off, w.buf = off, w.buf[:min(windowBytes, w.t.strSize-off)]
	if err := w.f.read(w.buf, w.t.strOff+off); err != nil {
		return nil, err
	}
	name := beforeNUL(w.buf)
	return name[:min(len(name), maxNameBytes)], nil
}
