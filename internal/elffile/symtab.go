package elffile

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
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

	// maxTLSSymbols and maxIntSymbols bound the symbols that are kept.
	maxTLSSymbols = 4 << 10
	maxIntSymbols = 64 << 10

	// intBytes is the size of a C int.
	intBytes = 4
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

// TLSSymbol looks up a defined thread-local symbol in .symtab: for what
// DynamicSymbol cannot find, such as symbols of a static executable. A global
// symbol wins over a local one. Local symbols of the same name cannot be told
// apart: the error is ErrAmbiguous then. ok is false too when there is no .symtab.
//
// One pass over .symtab at the first call serves all names, and IntSymbol.
func (f *File) TLSSymbol(name string) (sym Symbol, ok bool, err error) {
	k, err := f.keptSymbols()
	if err != nil {
		return Symbol{}, false, err
	}
	c, err := f.choose(k.strings, k.tls, name)
	switch {
	case err != nil || c.ok():
	case c.locals > 1:
		err = ErrAmbiguous
	case k.tlsCut:
		err = &FormatError{k.strings.off, "number of thread-local symbols above", maxTLSSymbols}
	}
	return c.found, c.ok(), err
}

// ErrAmbiguous says that a file has several local thread-local symbols of one name.
var ErrAmbiguous = errors.New("several local thread-local variables of that name")

// IntSymbol is TLSSymbol for data of the size of an int, where local symbols of the same name are not found.
func (f *File) IntSymbol(name string) (sym Symbol, ok bool, err error) {
	k, err := f.keptSymbols()
	if err != nil {
		return Symbol{}, false, err
	}
	c, err := f.choose(k.strings, k.ints, name)
	if err == nil && !c.ok() && k.intsCut {
		err = &FormatError{k.strings.off, "number of symbols of the size of an int above", maxIntSymbols}
	}
	return c.found, c.ok(), err
}

// kept are the symbols of .symtab that may be asked for, in the order of their
// names in the string table.
type kept struct {
	strings   table
	tls, ints []rawSymbol
	// There are more than maxTLSSymbols, maxIntSymbols.
	tlsCut, intsCut bool
}

// keptSymbols reads .symtab at the first call.
func (f *File) keptSymbols() (*kept, error) {
	if f.kept != nil {
		return f.kept, nil
	}
	t, ok, err := f.symtab()
	if err != nil {
		return nil, fmt.Errorf("find .symtab: %w", err)
	}
	k := &kept{strings: t}
	if ok {
		if err := f.batches(t.off, symbolBytes, t.count, k.add); err != nil {
			return nil, fmt.Errorf("read .symtab: %w", err)
		}
	}
	byName := func(a, b rawSymbol) int { return cmp.Compare(a.name, b.name) }
	slices.SortStableFunc(k.tls, byName)
	slices.SortStableFunc(k.ints, byName)
	f.kept = k
	return k, nil
}

// add keeps what matters of some symbols.
func (k *kept) add(_ uint64, b []byte) bool {
	for ; len(b) >= symbolBytes; b = b[symbolBytes:] {
		// Most symbols fail the first test, so it looks at one byte only.
		switch elf.ST_TYPE(b[4]) {
		case elf.STT_TLS:
			if k.tlsCut = len(k.tls) == maxTLSSymbols; !k.tlsCut {
				k.tls = append(k.tls, parseSymbol(b))
			}
		case elf.STT_OBJECT:
			if binary.LittleEndian.Uint64(b[16:]) != intBytes {
				continue
			}
			if k.intsCut = len(k.ints) == maxIntSymbols; !k.intsCut {
				k.ints = append(k.ints, parseSymbol(b))
			}
		}
	}
	return true
}

// choose looks for a name among symbols, which are sorted by name.
func (f *File) choose(strings table, symbols []rawSymbol, name string) (c choice, err error) {
	if name == "" || len(name) >= maxNameBytes {
		return choice{}, nil
	}
	names := window{f: f, t: strings}
	for _, r := range symbols {
		got, err := names.at(r.name)
		if err != nil {
			return choice{}, fmt.Errorf("read names of .symtab: %w", err)
		}
		if string(got) == name && !c.add(r.symbol(name, 0)) {
			break
		}
	}
	return c, nil
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
