package hotspot

import (
	"encoding/binary"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
)

// Bounds of the tables of a libjvm.
const (
	maxTableEntries = 8192
	maxStride       = 128
	maxTableName    = 128
	maxTablePages   = 1024
	pageBytes       = 4096
)

// tableSymbols are what a libjvm exports of its tables.
var tableSymbols = [...]string{
	"gHotSpotVMStructs", "gHotSpotVMStructEntryArrayStride", "gHotSpotVMStructEntryTypeNameOffset",
	"gHotSpotVMStructEntryFieldNameOffset", "gHotSpotVMStructEntryIsStaticOffset",
	"gHotSpotVMStructEntryOffsetOffset", "gHotSpotVMStructEntryAddressOffset",
	"gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride", "gHotSpotVMTypeEntryTypeNameOffset", "gHotSpotVMTypeEntrySizeOffset",
	"gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntryArrayStride", "gHotSpotVMIntConstantEntryNameOffset",
	"gHotSpotVMIntConstantEntryValueOffset",
}

// symbolValues returns the virtual addresses of tableSymbols.
func symbolValues(e *elffile.File) (values [len(tableSymbols)]uint64, err error) {
	for i, name := range tableSymbols {
		sym, ok, err := e.DynamicSymbol(name)
		if err != nil {
			return values, fmt.Errorf("find %s: %w", name, err)
		}
		if !ok || !sym.Defined() {
			return values, fmt.Errorf("%w: HotSpot without %s", langruntime.ErrUnreadable, name)
		}
		values[i] = sym.Value
	}
	return values, nil
}

// tables are what a libjvm says of itself in a process.
type tables struct {
	offsets map[string]uint64 // of fields that are not static, by "Type.field"
	statics map[string]uint64 // addresses of those that are
	sizes   map[string]uint64 // of types
	numbers map[string]uint64 // constants of type int
}

// readTables reads the tables, whose symbols have these addresses. Until the loader and the
// library's constructors have been there, they make no sense.
func readTables(mem langruntime.Memory, symbols [len(tableSymbols)]uint64) (*tables, error) {
	r := &pageReader{mem: mem, pages: map[uint64][]byte{}}
	var v [len(tableSymbols)]uint64
	for i, addr := range symbols {
		v[i] = r.word(addr)
	}
	t := &tables{offsets: map[string]uint64{}, statics: map[string]uint64{}, sizes: map[string]uint64{}, numbers: map[string]uint64{}}
	r.each(v[0], v[1], v[2:7], func(entry uint64) bool {
		typ := r.text(r.word(entry + v[2]))
		if typ == "" {
			return false
		}
		name := typ + "." + r.text(r.word(entry+v[3]))
		if uint32(r.word(entry+v[4])) != 0 {
			t.statics[name] = r.word(entry + v[6])
		} else {
			t.offsets[name] = r.word(entry + v[5])
		}
		return true
	})
	r.each(v[7], v[8], v[9:11], func(entry uint64) bool {
		typ := r.text(r.word(entry + v[9]))
		t.sizes[typ] = r.word(entry + v[10])
		return typ != ""
	})
	r.each(v[11], v[12], v[13:15], func(entry uint64) bool {
		name := r.text(r.word(entry + v[13]))
		t.numbers[name] = uint64(uint32(r.word(entry + v[14])))
		return name != ""
	})
	if r.err != nil {
		return nil, fmt.Errorf("read tables of HotSpot: %w", r.err)
	}
	return t, nil
}

// pageReader reads memory of a process by pages, each once. After an error all is 0.
type pageReader struct {
	mem   langruntime.Memory
	pages map[uint64][]byte
	err   error
}

// each goes through a table until next returns false.
func (r *pageReader) each(table, stride uint64, offsets []uint64, next func(entry uint64) bool) {
	for _, o := range offsets {
		if o+8 > stride && r.err == nil {
			r.err = fmt.Errorf("%w: fields beyond the entries of a table", langruntime.ErrStarting)
		}
	}
	if stride > maxStride && r.err == nil {
		r.err = fmt.Errorf("%w: entries of %d bytes", langruntime.ErrStarting, stride)
	}
	for i := uint64(0); r.err == nil && next(table+i*stride); i++ {
		if i == maxTableEntries {
			r.err = fmt.Errorf("%w: a table without an end", langruntime.ErrStarting)
		}
	}
}

// page returns the page of an address, nil if it cannot be read.
func (r *pageReader) page(addr uint64) []byte {
	addr &^= pageBytes - 1
	if p := r.pages[addr]; p != nil {
		return p
	}
	if r.err != nil {
		return nil
	}
	if len(r.pages) == maxTablePages {
		r.err = fmt.Errorf("%w: tables that are spread over memory", langruntime.ErrStarting)
		return nil
	}
	p := make([]byte, pageBytes)
	if r.err = r.mem.ReadAt(p, addr); r.err != nil {
		return nil
	}
	r.pages[addr] = p
	return p
}

func (r *pageReader) byte(addr uint64) byte {
	p := r.page(addr)
	if p == nil {
		return 0
	}
	return p[addr%pageBytes]
}

// word reads 8 bytes; fields of 4 bytes are the lower half.
func (r *pageReader) word(addr uint64) uint64 {
	var b [8]byte
	if p := r.page(addr); p != nil && addr%pageBytes <= pageBytes-8 {
		return binary.LittleEndian.Uint64(p[addr%pageBytes:])
	}
	for i := range b {
		b[i] = r.byte(addr + uint64(i))
	}
	return binary.LittleEndian.Uint64(b[:])
}

// text reads a string of C, "" at address 0.
func (r *pageReader) text(addr uint64) string {
	if addr == 0 {
		return ""
	}
	var b []byte
	for c := r.byte(addr); c != 0; c = r.byte(addr) {
		if len(b) == maxTableName {
			r.err = fmt.Errorf("%w: names without an end", langruntime.ErrStarting)
			return ""
		}
		b = append(b, c)
		addr++
	}
	return string(b)
}
