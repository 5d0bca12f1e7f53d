package gopclntab

import (
	"debug/elf"
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// Errors of Find. Others say that the file is damaged.
var (
	// ErrNone says that the file has no table of a known format.
	ErrNone = errors.New("no Go function table")

	// ErrNoText says that it is not known where the code begins that the table is
	// about.
	ErrNoText = errors.New("unknown start of Go code")
)

// Table says where a file has its tables. It is comparable.
type Table struct {
	// Start and Limit are the addresses of all Go code, Limit exclusive.
	Start, Limit uint64

	header
	quantum uint64
	text    uint64 // address that offsets of code count from
	off     uint64 // of the header in the file
	size    uint64 // of all tables
	// inlined is the offset in the file that offsets of inline trees count from, and
	// inlinedBytes how much of the file there is; 0 if it is not known.
	inlined, inlinedBytes uint64
}

// Find locates the table of a Go program or library.
func Find(f *elffile.File) (Table, error) {
	vaddr, size, err := locate(f)
	if err != nil {
		return Table{}, err
	}
	h, off, avail, ok := readHeader(f, vaddr, size)
	if !ok {
		return Table{}, ErrNone
	}
	t := Table{header: h, quantum: uint64(quantum(f.Machine)), off: off, size: avail}
	m, err := findModule(f, vaddr, h)
	if err != nil {
		return Table{}, err
	}
	t.text = m.text
	if t.text == 0 {
		t.text = h.textStart
	}
	if m.gofunc != 0 {
		if t.inlined, t.inlinedBytes, ok = f.FileRange(m.gofunc); !ok {
			t.inlined, t.inlinedBytes = 0, 0
		}
	}
	first, err := t.offsetAt(f, vaddr, 0)
	if err != nil {
		return Table{}, err
	}
	last, err := t.offsetAt(f, vaddr, h.functions)
	if err != nil {
		return Table{}, err
	}
	t.Start, t.Limit = t.text+uint64(first), t.text+uint64(last)
	if t.text == 0 || !executable(f, t.Start, t.Limit) {
		return Table{}, ErrNoText
	}
	return t, nil
}

// offsetAt reads where function i begins, from the start of the code.
func (t *Table) offsetAt(f *elffile.File, vaddr, i uint64) (uint32, error) {
	var b [4]byte
	if err := f.ReadVaddr(b[:], vaddr+t.code+i*functabBytes); err != nil {
		return 0, fmt.Errorf("read table of functions: %w", err)
	}
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24, nil
}

// Contains reports whether there may be Go code at an address.
func (t *Table) Contains(pc uint64) bool { return pc >= t.Start && pc < t.Limit }

// executable reports whether one segment of code has all of [start, limit).
func executable(f *elffile.File, start, limit uint64) bool {
	for s := range f.Loads() {
		if s.Flags&elf.PF_X != 0 && start >= s.Vaddr && start < limit && limit-s.Vaddr <= s.Memsz {
			return true
		}
	}
	return false
}
