package elffile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	sectionBytes = 64 // sizeof(Elf64_Shdr)

	// maxSections bounds the section headers that are searched for .symtab.
	maxSections = 4096

	// maxSymbols bounds the symbols of one table (48 MiB of them); the
	// largest browsers have about that many.
	maxSymbols = 2 << 20

	// maxTLSSymbols bounds the thread-local symbols that are kept.
	maxTLSSymbols = 1024

	// maxTLSNameBytes bounds their names; longer ones are not found.
	maxTLSNameBytes = 128
)

// table is a symbol table with its string table, as file ranges.
type table struct {
	off, count      uint64
	strOff, strSize uint64
}

// symtab finds .symtab. ok is false when the file is stripped or has no
// section headers.
func (f *File) symtab() (t table, ok bool, err error) {
	if f.sectionOffset == 0 || f.sectionCount == 0 {
		return table{}, false, nil
	}
	if f.sectionCount > maxSections {
		return table{}, false, &FormatError{60, "number of section headers", f.sectionCount}
	}
	link := uint32(0)
	err = f.each(f.sectionOffset, sectionBytes, uint64(f.sectionCount), func(_ uint64, b []byte) bool {
		if ok = elf.SectionType(binary.LittleEndian.Uint32(b[4:])) == elf.SHT_SYMTAB; ok {
			t.off, t.count, link = binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:])/symbolBytes, binary.LittleEndian.Uint32(b[40:])
		}
		return !ok
	})
	if err != nil || !ok {
		return table{}, false, err
	}
	if t.count > maxSymbols {
		return table{}, false, &FormatError{t.off, "number of symbols", t.count}
	}
	if link >= uint32(f.sectionCount) {
		return table{}, false, &FormatError{f.sectionOffset, "string table of .symtab", link}
	}
	b, err := f.small(sectionBytes, f.sectionOffset+sectionBytes*uint64(link))
	if err != nil {
		return table{}, false, err
	}
	t.strOff, t.strSize = binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:])
	if t.strOff > f.size || t.strSize > f.size-t.strOff {
		return table{}, false, &FormatError{t.strOff, "string table outside of the file, bytes", t.strSize}
	}
	return t, true, nil
}

// Symbol looks up a defined symbol in .symtab, which it reads from start to
// end: for what DynamicSymbol cannot find, such as symbols of a static
// executable. A global symbol wins over a local one. Local symbols of the
// same name cannot be told apart: they are not found. ok is false too when
// there is no .symtab.
func (f *File) Symbol(name string) (sym Symbol, ok bool, err error) {
	if name == "" || len(name) >= maxNameBytes {
		return Symbol{}, false, nil
	}
	t, ok, err := f.symtab()
	if err != nil || !ok {
		return Symbol{}, false, err
	}
	names, err := f.findName(t, name)
	if err != nil || len(names) == 0 {
		return Symbol{}, false, err
	}
	var c choice
	err = f.each(t.off, symbolBytes, t.count, func(_ uint64, b []byte) bool {
		if r := parseSymbol(b); slices.Contains(names, r.name) {
			return c.add(r.symbol(name, 0))
		}
		return true
	})
	return c.found, c.ok(), err
}

// TLSSymbol is Symbol for thread-local symbols (STT_TLS). One pass over
// .symtab at the first call serves all names.
func (f *File) TLSSymbol(name string) (sym Symbol, ok bool, err error) {
	if f.tlsSymbols == nil {
		all, err := f.readTLSSymbols()
		if err != nil {
			return Symbol{}, false, fmt.Errorf("read thread-local symbols: %w", err)
		}
		f.tlsSymbols = &all
	}
	var c choice
	for _, s := range *f.tlsSymbols {
		if s.Name == name && !c.add(s) {
			break
		}
	}
	return c.found, c.ok(), nil
}

func (f *File) readTLSSymbols() ([]Symbol, error) {
	t, ok, err := f.symtab()
	if err != nil || !ok {
		return nil, err
	}
	var raw []rawSymbol
	err = f.each(t.off, symbolBytes, t.count, func(_ uint64, b []byte) bool {
		// Most symbols fail the first test, so it looks at one byte only.
		if elf.ST_TYPE(b[4]) == elf.STT_TLS && binary.LittleEndian.Uint16(b[6:]) != uint16(elf.SHN_UNDEF) {
			raw = append(raw, parseSymbol(b))
		}
		return len(raw) < maxTLSSymbols
	})
	if err != nil {
		return nil, err
	}
	symbols := make([]Symbol, 0, len(raw))
	buf := make([]byte, maxTLSNameBytes)
	for _, r := range raw {
		if uint64(r.name) >= t.strSize {
			continue
		}
		b := buf[:min(t.strSize-uint64(r.name), maxTLSNameBytes)]
		if err := f.read(b, t.strOff+uint64(r.name)); err != nil {
			return nil, err
		}
		if name := beforeNUL(b); len(name) < len(b) {
			symbols = append(symbols, r.symbol(string(name), 0))
		}
	}
	return symbols, nil
}

// choice picks one of the symbols of the same name.
type choice struct {
	found  Symbol
	locals int // with differing values
	global bool
}

// add returns false when no further symbol can change the choice.
func (c *choice) add(s Symbol) bool {
	switch {
	case !s.Defined():
	case s.Bind != elf.STB_LOCAL:
		c.found, c.global = s, true
		return false
	case c.locals == 0 || s.Value != c.found.Value:
		c.found = s
		c.locals++
	}
	return true
}

func (c *choice) ok() bool { return c.global || c.locals == 1 }
