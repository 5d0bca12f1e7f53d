package gopclntab

import (
	"bytes"
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	// maxSearchBytes of a file without section headers are searched for the table.
	maxSearchBytes = 256 << 20
	searchBytes    = 64 << 10
	// minAlign is the least alignment of the table.
	minAlign = 8
)

// sections have the table; the linker uses the second one where relocations change it.
var sections = [...]string{".gopclntab", ".data.rel.ro.gopclntab"}

// locate finds the table: by its section, else by its first bytes. Only files that
// say that they are Go programs, or say nothing at all, are searched.
func locate(f *elffile.File) (vaddr, size uint64, err error) {
	for _, name := range sections {
		s, ok, err := f.Section(name)
		if err != nil {
			break // they need not be right for the program to run
		}
		if ok && s.Size > 0 {
			return s.Addr, s.Size, nil
		}
	}
	if f.HasSections() {
		if id, err := f.GoBuildID(); err != nil || id == "" {
			return 0, 0, ErrNone
		}
	}
	return search(f)
}

// search looks through the segments for something that is a table: a valid header,
// behind which functions begin in the order of their addresses.
func search(f *elffile.File) (vaddr, size uint64, err error) {
	buf := make([]byte, min(searchBytes, f.Size()))
	left := uint64(maxSearchBytes)
	for s := range f.Loads() {
		// Steps overlap, so that no header is cut.
		for off := uint64(0); off < s.Filesz && left > 0; off += searchBytes - headerBytes {
			n := min(uint64(len(buf)), s.Filesz-off, left)
			left -= n
			if err := f.ReadVaddr(buf[:n], s.Vaddr+off); err != nil {
				break
			}
			if at, ok := searchIn(f, buf[:n], s.Vaddr+off); ok {
				return at, 0, nil
			}
		}
	}
	return 0, 0, ErrNone
}

// searchIn searches the bytes that the file has at vaddr.
func searchIn(f *elffile.File, b []byte, vaddr uint64) (at uint64, ok bool) {
	for i := 0; ; {
		next := bytes.Index(b[i:], []byte{0xff, 0xff, 0xff, 0, 0, quantum(f.Machine), 8})
		if next < 0 {
			return 0, false
		}
		// The first byte of the magic number stands before what was searched for.
		i += next
		at := vaddr + uint64(i) - 1
		if i > 0 && at%minAlign == 0 && plausible(f, at) {
			return at, true
		}
		i++
	}
}

// plausible reports whether the first functions of a table are in order.
func plausible(f *elffile.File, vaddr uint64) bool {
	h, _, _, ok := readHeader(f, vaddr, 0)
	if !ok {
		return false
	}
	const most = 16
	n := min(h.functions+1, most)
	b := make([]byte, n*functabBytes)
	if f.ReadVaddr(b, vaddr+h.code) != nil {
		return false
	}
	for i := uint64(1); i < n; i++ {
		if binary.LittleEndian.Uint32(b[i*functabBytes:]) < binary.LittleEndian.Uint32(b[(i-1)*functabBytes:]) {
			return false
		}
	}
	return true
}
