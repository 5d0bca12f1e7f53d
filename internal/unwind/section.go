package unwind

import (
	"debug/elf"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// headerBytes are what is read of .eh_frame_hdr: its version, three encodings
// and the address of .eh_frame (LSB Core 5.0, section 10.6.2).
const headerBytes = 12

// ehFrame finds .eh_frame: by its section header, else by PT_GNU_EH_FRAME, which
// leads to its beginning. terminated says that nothing but a zero length tells
// its end.
func ehFrame(e *elffile.File) (s elffile.Section, terminated, ok bool, err error) {
	s, ok, err = e.Section(".eh_frame")
	if err == nil && ok && s.Type != elf.SHT_NOBITS && s.Size > 0 {
		return s, false, true, nil
	}
	for _, p := range e.Progs() {
		if p.Type != elf.PT_GNU_EH_FRAME {
			continue
		}
		if s, ok, headerErr := byHeader(e, p); headerErr != nil || ok {
			return s, true, ok, headerErr
		}
	}
	return elffile.Section{}, false, false, err
}

// byHeader follows .eh_frame_hdr to .eh_frame, which lasts to the end of its
// segment at most.
func byHeader(e *elffile.File, header elffile.Segment) (s elffile.Section, ok bool, err error) {
	var b [headerBytes]byte
	n := min(headerBytes, header.Filesz)
	if err := e.ReadVaddr(b[:n], header.Vaddr); err != nil {
		return s, false, fmt.Errorf("read .eh_frame_hdr: %w", err)
	}
	c := cursor{b: b[:n]}
	version, enc := c.u8(), c.u8()
	c.bytes(2) // encodings of the search table
	if version != 1 || enc&encIndirect != 0 {
		return s, false, nil
	}
	vaddr := c.pointer(enc, header.Vaddr, header.Vaddr)
	if c.bad {
		return s, false, nil
	}
	for p := range e.Loads() {
		if d := vaddr - p.Vaddr; vaddr >= p.Vaddr && d < p.Filesz {
			s := elffile.Section{Type: elf.SHT_PROGBITS, Addr: vaddr, Offset: p.Offset + d, Size: p.Filesz - d}
			// The file may be shorter, as the image of a vDSO is.
			if size := uint64(e.Size()); s.Offset < size {
				s.Size = min(s.Size, size-s.Offset)
				return s, true, nil
			}
		}
	}
	return s, false, nil
}

// debugFrame finds .debug_frame.
func debugFrame(e *elffile.File) (s elffile.Section, ok bool, err error) {
	s, ok, err = e.Section(".debug_frame")
	return s, ok && err == nil && s.Type != elf.SHT_NOBITS && s.Size > 0, err
}
