package elffile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

const (
	symbolBytes = 24 // sizeof(Elf64_Sym)

	// maxNameBytes bounds the names that we look for or keep.
	maxNameBytes = 1024
)

// Symbol is a symbol with its name resolved.
type Symbol struct {
	Name       string
	Value      uint64 // virtual address; STT_TLS: offset in the TLS segment
	Size       uint64 // bytes
	Type       elf.SymType
	Bind       elf.SymBind
	Visibility elf.SymVis
	Section    elf.SectionIndex
	// Index in the dynamic symbol table, which relocations refer to; 0 for a
	// symbol that is only in .symtab.
	Index uint32
}

// Defined reports whether the file itself defines the symbol.
func (s Symbol) Defined() bool { return s.Section != elf.SHN_UNDEF }

// rawSymbol is an Elf64_Sym.
type rawSymbol struct {
	name        uint32
	info, other uint8
	section     uint16
	value, size uint64
}

func parseSymbol(b []byte) rawSymbol {
	return rawSymbol{
		name: binary.LittleEndian.Uint32(b), info: b[4], other: b[5], section: binary.LittleEndian.Uint16(b[6:]),
		value: binary.LittleEndian.Uint64(b[8:]), size: binary.LittleEndian.Uint64(b[16:]),
	}
}

func (r rawSymbol) symbol(name string, index uint32) Symbol {
	return Symbol{
		Name: name, Value: r.value, Size: r.size, Type: elf.ST_TYPE(r.info), Bind: elf.ST_BIND(r.info),
		Visibility: elf.ST_VISIBILITY(r.other), Section: elf.SectionIndex(r.section), Index: index,
	}
}

// dynamicSymbol reads an entry of the dynamic symbol table.
func (f *File) dynamicSymbol(index uint32) (rawSymbol, error) {
	d, err := f.dyn()
	if err != nil {
		return rawSymbol{}, err
	}
	b, err := f.smallAt(symbolBytes, d.symtab+symbolBytes*uint64(index))
	if err != nil {
		return rawSymbol{}, fmt.Errorf("read dynamic symbol %d: %w", index, err)
	}
	return parseSymbol(b), nil
}
