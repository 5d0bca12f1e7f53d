package gopclntab

import (
	"debug/elf"
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// The formats, by the first word of the table (internal/abi/symtab.go).
const (
	magic118 = 0xfffffff0
	magic120 = 0xfffffff1
)

const (
	headerBytes = 8 + 8*8
	// functabBytes is sizeof(functab).
	functabBytes = 8
	// maxFunctions of one program; the largest have about a million.
	maxFunctions = 16 << 20
)

// header is runtime.pcHeader. Offsets count from its start.
type header struct {
	current   bool // as since Go 1.20
	functions uint64
	textStart uint64 // 0 since Go 1.26, and before relocation
	// Tables, in the order that they are in; each ends where the next one begins.
	names, units, files, values, code uint64
}

// parseHeader parses the start of a table of at most size bytes.
func parseHeader(b []byte, machine elf.Machine, size uint64) (header, bool) {
	if len(b) < headerBytes || size < headerBytes {
		return header{}, false
	}
	magic := binary.LittleEndian.Uint32(b)
	if magic != magic118 && magic != magic120 || b[4] != 0 || b[5] != 0 || b[6] != quantum(machine) || b[7] != 8 {
		return header{}, false
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8+8*i:]) }
	h := header{
		current: magic == magic120, functions: word(0), textStart: word(2),
		names: word(3), units: word(4), files: word(5), values: word(6), code: word(7),
	}
	ordered := headerBytes <= h.names && h.names <= h.units && h.units <= h.files &&
		h.files <= h.values && h.values <= h.code && h.code <= size
	if !ordered || h.functions == 0 || h.functions > maxFunctions || (size-h.code)/functabBytes <= h.functions {
		return header{}, false
	}
	return h, true
}

// quantum is the unit of the lengths of code, in bytes.
func quantum(machine elf.Machine) uint8 {
	if machine == elf.EM_AARCH64 {
		return 4
	}
	return 1
}

// readHeader parses the table at a virtual address. size 0 stands for all there is.
func readHeader(f *elffile.File, vaddr, size uint64) (h header, off, avail uint64, ok bool) {
	off, avail, ok = f.FileRange(vaddr)
	if !ok {
		return header{}, 0, 0, false
	}
	if size != 0 {
		avail = min(avail, size)
	}
	b := make([]byte, headerBytes)
	if avail < headerBytes || f.ReadVaddr(b, vaddr) != nil {
		return header{}, 0, 0, false
	}
	h, ok = parseHeader(b, f.Machine, avail)
	return h, off, avail, ok
}
