package elffile

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// Function is a function symbol.
type Function struct {
	Name  []byte // valid during the call of yield only
	Value uint64 // virtual address
	Size  uint64 // bytes; 0 when not known
	// Room is, where Size is not known, how many bytes there are at most: to the end of the
	// symbol's section. 0 when that is not known either.
	Room uint64
}

// Functions calls yield with every function that the file defines, first those
// of .symtab, then those of the dynamic symbol table, until it returns false.
// A function in both comes twice. An error in one table does not hide the
// functions of the other.
func (f *File) Functions(yield func(Function) bool) error {
	stopped := false
	visit := func(fn Function) bool {
		stopped = !yield(fn)
		return !stopped
	}
	err := f.StaticFunctions(visit)
	if stopped {
		return nil
	}
	return cmp.Or(err, f.DynamicFunctions(visit))
}

// StaticFunctions is Functions for .symtab alone. Of a file that was stripped there
// are none; of one with nothing but debug information it is all that counts: what its
// program headers say lies in the file that it was taken from. Names are without versions, as
// those of the dynamic symbol table are.
func (f *File) StaticFunctions(yield func(Function) bool) error {
	t, ok, err := f.symtab()
	if err == nil && ok {
		err = f.functions(t, func(fn Function) bool {
			fn.Name = withoutVersion(fn.Name)
			return yield(fn)
		})
	}
	if err != nil {
		return fmt.Errorf("read .symtab: %w", err)
	}
	return nil
}

// withoutVersion cuts the version off that linkers append: name@VERSION, or name@@VERSION for
// the default one.
func withoutVersion(name []byte) []byte {
	if i := bytes.LastIndexByte(name, '@'); i > 0 && i+1 < len(name) {
		return bytes.TrimSuffix(name[:i], []byte("@"))
	}
	return name
}

// DynamicFunctions is Functions for the dynamic symbol table alone.
func (f *File) DynamicFunctions(yield func(Function) bool) error {
	t, ok, err := f.dynamicTable()
	if err == nil && ok {
		err = f.functions(t, yield)
	}
	if err != nil {
		return fmt.Errorf("read dynamic symbols: %w", err)
	}
	return nil
}

func (f *File) functions(t table, yield func(Function) bool) error {
	names, places := window{f: f, t: t}, sectionPlaces{f: f}
	var nameErr error
	err := f.each(t.off, symbolBytes, t.count, func(_ uint64, b []byte) bool {
		if typ := elf.ST_TYPE(b[4]); typ != elf.STT_FUNC && typ != elf.STT_GNU_IFUNC {
			return true
		}
		r := parseSymbol(b)
		if elf.SectionIndex(r.section) == elf.SHN_UNDEF {
			return true
		}
		var name []byte
		if name, nameErr = names.at(r.name); nameErr != nil {
			return false
		}
		if len(name) == 0 {
			return true
		}
		fn := Function{Name: name, Value: r.value, Size: r.size}
		if fn.Size == 0 {
			fn.Room = places.room(r.section, r.value)
		}
		return yield(fn)
	})
	if err == nil {
		err = nameErr
	}
	return err
}

// sectionPlaces says where sections end in memory.
type sectionPlaces struct {
	f     *File
	read  bool
	place []struct{ start, end uint64 } // by section
}

// room is how many bytes there are from an address to the end of the section that holds it,
// 0 if it holds none. Without section headers, nothing is known.
func (p *sectionPlaces) room(section uint16, vaddr uint64) uint64 {
	if f := p.f; !p.read && f.HasSections() && f.sectionCount <= maxSections {
		_ = f.each(f.sectionOffset, sectionBytes, uint64(f.sectionCount), func(_ uint64, b []byte) bool {
			start := binary.LittleEndian.Uint64(b[16:])
			p.place = append(p.place, struct{ start, end uint64 }{start, start + binary.LittleEndian.Uint64(b[32:])})
			return true
		})
	}
	p.read = true
	if int(section) >= len(p.place) || vaddr < p.place[section].start || vaddr >= p.place[section].end {
		return 0
	}
	return p.place[section].end - vaddr
}

// dynamicTable locates the dynamic symbol table as a file range. Nothing
// states its length but the hash tables.
func (f *File) dynamicTable() (t table, ok bool, err error) {
	d, err := f.dyn()
	if err != nil || d.symtab == 0 || d.strtab == 0 {
		return table{}, false, err
	}
	if t.count, err = f.dynamicSymbols(d); err != nil || t.count == 0 {
		return table{}, false, err
	}
	if t.count > maxSymbols {
		return table{}, false, &FormatError{d.symtab, "number of dynamic symbols at address", t.count}
	}
	var avail, strAvail uint64
	if t.off, avail, ok = f.fileRange(d.symtab); !ok || avail/symbolBytes < t.count {
		return table{}, false, &FormatError{d.symtab, "dynamic symbols outside of the file's segments at address", t.count}
	}
	if t.strOff, strAvail, ok = f.fileRange(d.strtab); !ok || strAvail < d.strsz {
		return table{}, false, &FormatError{d.strtab, "dynamic strings outside of the file's segments at address", d.strsz}
	}
	t.strSize = d.strsz
	return t, true, nil
}

// dynamicSymbols counts the dynamic symbols.
func (f *File) dynamicSymbols(d *dynamic) (uint64, error) {
	if d.sysvHash != 0 {
		b, err := f.smallAt(8, d.sysvHash)
		if err != nil {
			return 0, err
		}
		return uint64(binary.LittleEndian.Uint32(b[4:])), nil
	}
	if d.gnuHash == 0 {
		return 0, nil
	}
	b, err := f.smallAt(16, d.gnuHash)
	if err != nil {
		return 0, err
	}
	buckets, firstHashed, bloomWords := uint64(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:]), uint64(binary.LittleEndian.Uint32(b[8:]))
	bucketTable := d.gnuHash + 16 + 8*bloomWords
	off, avail, ok := f.fileRange(bucketTable)
	if !ok || avail/4 < buckets || buckets > maxSymbols {
		return 0, &FormatError{bucketTable, "GNU hash table buckets at address", buckets}
	}
	last := uint32(0)
	err = f.each(off, 4, buckets, func(_ uint64, b []byte) bool {
		last = max(last, binary.LittleEndian.Uint32(b))
		return true
	})
	if err != nil || last < firstHashed {
		return uint64(firstHashed), err
	}
	// The symbols are sorted by bucket: the end of the chain of the last one
	// is the end of the table.
	chain := bucketTable + 4*buckets + 4*uint64(last-firstHashed)
	if off, avail, ok = f.fileRange(chain); !ok {
		return 0, &FormatError{chain, "GNU hash chain outside of the file's segments at address", nil}
	}
	ended := false
	err = f.each(off, 4, min(avail/4, maxChain), func(_ uint64, b []byte) bool {
		last++
		ended = binary.LittleEndian.Uint32(b)&1 != 0
		return !ended
	})
	if err == nil && !ended {
		err = &FormatError{chain, "length of GNU hash chain at address", maxChain}
	}
	return uint64(last), err
}
