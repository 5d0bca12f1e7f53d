package elffile

import "bytes"

// maxNameHits bounds the places where a name may occur in a string table.
// Linkers store a string once, but a longer name may end with it.
const maxNameHits = 64

// findName returns the offsets in the string table at which name, with its
// terminating NUL, stands. Linkers let a name share the tail of a longer one,
// so it may be preceded by anything.
func (f *File) findName(t table, name string) ([]uint32, error) {
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
