package elffile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

const (
	dynamicBytes = 16 // sizeof(Elf64_Dyn)

	// maxDynamicEntries bounds the dynamic section; a program with hundreds
	// of libraries has hundreds of entries.
	maxDynamicEntries = 8192
)

// dynamic holds the entries of the dynamic section that we use. Addresses are
// virtual addresses as linked; 0 means absent.
type dynamic struct {
	gnuHash, sysvHash uint64
	symtab, strtab    uint64
	strsz             uint64
	versym            uint64
	rela, relasz      uint64
	relaCount         uint64 // leading relative relocations in rela
	jmprel, pltrelsz  uint64
	pltrel            uint64
	flags1            uint64
	needed            []uint64 // names in strtab, at most maxLibraries
	soname            uint64   // likewise
	named             bool     // there is a soname
	debug             uint64   // address of the value of DT_DEBUG
}

// dyn parses the dynamic section at the first call. A file without one yields
// the zero value.
func (f *File) dyn() (*dynamic, error) {
	if f.dynamic != nil {
		return f.dynamic, nil
	}
	d := &dynamic{}
	if s, ok := f.segment(elf.PT_DYNAMIC); ok {
		count := min(s.Filesz/dynamicBytes, maxDynamicEntries)
		err := f.each(s.Offset, dynamicBytes, count, func(i uint64, b []byte) bool {
			tag, val := elf.DynTag(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])
			d.set(tag, val)
			if tag == elf.DT_DEBUG {
				d.debug = s.Vaddr + i*dynamicBytes + 8
			}
			return tag != elf.DT_NULL
		})
		if err != nil {
			return nil, fmt.Errorf("read dynamic section: %w", err)
		}
	}
	f.dynamic = d
	return d, nil
}

func (d *dynamic) set(tag elf.DynTag, val uint64) {
	switch tag {
	case elf.DT_NEEDED:
		if len(d.needed) < maxLibraries {
			d.needed = append(d.needed, val)
		}
	case elf.DT_SONAME:
		d.soname, d.named = val, true
	case elf.DT_GNU_HASH:
		d.gnuHash = val
	case elf.DT_HASH:
		d.sysvHash = val
	case elf.DT_SYMTAB:
		d.symtab = val
	case elf.DT_STRTAB:
		d.strtab = val
	case elf.DT_STRSZ:
		d.strsz = val
	case elf.DT_VERSYM:
		d.versym = val
	case elf.DT_RELA:
		d.rela = val
	case elf.DT_RELASZ:
		d.relasz = val
	case elf.DT_RELACOUNT:
		d.relaCount = val
	case elf.DT_JMPREL:
		d.jmprel = val
	case elf.DT_PLTRELSZ:
		d.pltrelsz = val
	case elf.DT_PLTREL:
		d.pltrel = val
	case elf.DT_FLAGS_1:
		d.flags1 = val
	}
}

// NeedsLibraries reports whether the dynamic loader loads libraries for the file.
func (f *File) NeedsLibraries() (bool, error) {
	d, err := f.dyn()
	return err == nil && len(d.needed) > 0, err
}

// DebugAddress returns the virtual address of the word in which the dynamic
// loader leaves the address of its struct r_debug (DT_DEBUG). ok is false for a
// file without one: linkers write it for programs only, also for static PIEs,
// where nothing fills it.
func (f *File) DebugAddress() (vaddr uint64, ok bool) {
	d, err := f.dyn()
	if err != nil || d.debug == 0 {
		return 0, false
	}
	return d.debug, true
}
