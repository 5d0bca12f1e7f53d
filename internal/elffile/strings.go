package elffile

import "bytes"

const (
	// windowBytes and minWindowBytes bound what one read of names fetches.
	windowBytes    = 4 << 10
	minWindowBytes = 128

	// maxNamesBytes bounds what is read of a string table in all, by one walk
	// over symbols: they may be in any order, and name the same bytes again and
	// again.
	maxNamesBytes = 512 << 20
)

// window reads names of a string table without holding the table in memory.
// Linkers store names roughly in the order of the symbols, so that the next
// name is mostly in what was read for the one before. Where it is not, the
// window becomes smaller.
type window struct {
	f    *File
	t    table
	off  uint64 // of buf in the string table
	buf  []byte
	size uint64 // of the next read
	used uint64 // bytes of names that buf has served
	read uint64 // bytes in all
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
			w.used += uint64(i)
			return rest[:min(i, maxNameBytes)], nil
		}
	}
	switch {
	case w.buf == nil:
		w.buf, w.size = make([]byte, 0, windowBytes), minWindowBytes
	case w.used >= w.size/4:
		w.size = min(2*w.size, windowBytes)
	default:
		w.size = max(w.size/2, minWindowBytes)
	}
	w.used = 0
	for size := w.size; ; size = windowBytes {
		w.off, w.buf = off, w.buf[:min(size, w.t.strSize-off)]
		if w.read += uint64(len(w.buf)); w.read > maxNamesBytes {
			return nil, &FormatError{w.t.strOff, "bytes of names", w.read}
		}
		if err := w.f.read(w.buf, w.t.strOff+off); err != nil {
			return nil, err
		}
		// A name that goes on behind a small window is read anew.
		i := bytes.IndexByte(w.buf, 0)
		if i < 0 && size < windowBytes {
			continue
		}
		if i < 0 {
			i = len(w.buf)
		}
		w.used = uint64(i)
		return w.buf[:min(i, maxNameBytes)], nil
	}
}
