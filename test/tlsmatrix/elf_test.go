//go:build linux

package tlsmatrix

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
)

// anELF is what a file of the corpus has, read apart from internal/elffile: by
// debug/elf, and by the dynamic section alone where there are no section headers.
type anELF struct {
	*elf.File
	tags      map[elf.DynTag]uint64
	tls       *elf.Prog
	relocated []relocation // TLS relocations
	// The symbols of the two tables; debug/elf finds none without section headers.
	dynamic, static []elf.Symbol
}

type relocation struct {
	typ    uint32
	symbol string // "" if it is for the module
}

func openELF(path string) (*anELF, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e := &anELF{File: f, tags: map[elf.DynTag]uint64{}}
	e.dynamic, _ = f.DynamicSymbols() // error: there are none
	e.static, _ = f.Symbols()
	for _, p := range f.Progs {
		switch p.Type {
		case elf.PT_TLS:
			e.tls = p
		case elf.PT_DYNAMIC:
			if err := e.readTags(p); err != nil {
				return nil, err
			}
		}
	}
	for _, table := range [][2]elf.DynTag{{elf.DT_RELA, elf.DT_RELASZ}, {elf.DT_JMPREL, elf.DT_PLTRELSZ}} {
		if err := e.readRelocations(e.tags[table[0]], e.tags[table[1]]); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *anELF) readTags(p *elf.Prog) error {
	b, err := io.ReadAll(p.Open())
	if err != nil {
		return err
	}
	for ; len(b) >= 16; b = b[16:] {
		tag := elf.DynTag(binary.LittleEndian.Uint64(b))
		if tag == elf.DT_NULL {
			break
		}
		e.tags[tag] = binary.LittleEndian.Uint64(b[8:])
	}
	return nil
}

// at reads memory as the loader maps it.
func (e *anELF) at(vaddr, size uint64) ([]byte, error) {
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && vaddr >= p.Vaddr && vaddr+size <= p.Vaddr+p.Filesz {
			b := make([]byte, size)
			_, err := p.ReadAt(b, int64(vaddr-p.Vaddr))
			return b, err
		}
	}
	return nil, fmt.Errorf("nothing at %#x", vaddr)
}

func (e *anELF) readRelocations(vaddr, size uint64) error {
	if size == 0 {
		return nil
	}
	b, err := e.at(vaddr, size)
	if err != nil {
		return err
	}
	for ; len(b) >= 24; b = b[24:] {
		info := binary.LittleEndian.Uint64(b[8:])
		r := relocation{typ: uint32(info)}
		if modelOf(e.Machine, r.typ) == "" {
			continue
		}
		if index := info >> 32; index != 0 {
			if r.symbol, err = e.symbolName(index); err != nil {
				return err
			}
		}
		e.relocated = append(e.relocated, r)
	}
	return nil
}

func (e *anELF) symbolName(index uint64) (string, error) {
	b, err := e.at(e.tags[elf.DT_SYMTAB]+24*index, 24)
	if err != nil {
		return "", err
	}
	strings, err := e.at(e.tags[elf.DT_STRTAB], e.tags[elf.DT_STRSZ])
	if err != nil {
		return "", err
	}
	name, _, _ := bytes.Cut(strings[min(binary.LittleEndian.Uint32(b), uint32(len(strings))):], []byte{0})
	return string(name), nil
}

// modelOf names the TLS model that a type of relocation belongs to, as in cell.Model.
func modelOf(m elf.Machine, typ uint32) string {
	if m == elf.EM_AARCH64 {
		return map[elf.R_AARCH64]string{
			elf.R_AARCH64_TLS_TPREL64: "ie", elf.R_AARCH64_TLS_DTPMOD64: "gd", elf.R_AARCH64_TLSDESC: "desc",
		}[elf.R_AARCH64(typ)]
	}
	return map[elf.R_X86_64]string{
		elf.R_X86_64_TPOFF64: "ie", elf.R_X86_64_DTPMOD64: "gd", elf.R_X86_64_TLSDESC: "desc",
	}[elf.R_X86_64(typ)]
}

// tlsSymbol returns the last definition of a thread-local variable among
// symbols: the default one of several versions.
func tlsSymbol(symbols []elf.Symbol, name string) (elf.Symbol, bool) {
	var found elf.Symbol
	for _, s := range symbols {
		if s.Name == name && s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_TLS {
			found = s
		}
	}
	return found, found.Name != ""
}
