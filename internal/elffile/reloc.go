package elffile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

const (
	relocationBytes = 24 // sizeof(Elf64_Rela)

	// maxRelocations bounds one relocation table, relative ones not counted.
	maxRelocations = 1 << 20

	// maxRelative bounds the relocations of all kinds that are searched for
	// relative ones. The largest programs have some millions.
	maxRelative = 8 << 20
)

// Relocation is an Elf64_Rela.
type Relocation struct {
	Offset uint64 // virtual address of what is relocated
	Type   uint32 // elf.R_X86_64 or elf.R_AARCH64
	Symbol uint32 // index in the dynamic symbol table; 0: none
	Addend int64
}

// Relocations calls yield with the dynamic relocations of the file (DT_RELA,
// then DT_JMPREL) until it returns false. The leading relative relocations
// that DT_RELACOUNT counts are left out unread: the dynamic loader treats
// them as relative without looking at their type.
func (f *File) Relocations(yield func(Relocation) bool) error {
	d, err := f.dyn()
	if err != nil {
		return err
	}
	stopped := false
	visit := func(r Relocation) bool {
		stopped = !yield(r)
		return !stopped
	}
	skip := min(d.relaCount, d.relasz/relocationBytes) * relocationBytes
	if err := f.relocations(d.rela, skip, d.relasz, maxRelocations, visit); err != nil || stopped {
		return err
	}
	if elf.DynTag(d.pltrel) != elf.DT_RELA {
		return nil
	}
	return f.relocations(d.jmprel, 0, d.pltrelsz, maxRelocations, visit)
}

// RelativeRelocations calls yield with the places that the dynamic loader fills
// with an address of the file itself, and with that address as linked, until it
// returns false. Packed ones (DT_RELR) are left out: their places hold the address.
func (f *File) RelativeRelocations(yield func(vaddr, value uint64) bool) error {
	d, err := f.dyn()
	if err != nil {
		return err
	}
	relative := uint32(elf.R_X86_64_RELATIVE)
	if f.Machine == elf.EM_AARCH64 {
		relative = uint32(elf.R_AARCH64_RELATIVE)
	}
	return f.relocations(d.rela, 0, d.relasz, maxRelative, func(r Relocation) bool {
		return r.Type != relative || yield(r.Offset, uint64(r.Addend))
	})
}

func (f *File) relocations(vaddr, skip, size, most uint64, yield func(Relocation) bool) error {
	count := (size - skip) / relocationBytes
	if vaddr == 0 || count == 0 {
		return nil
	}
	if count > most {
		return &FormatError{vaddr, "number of relocations at address", count}
	}
	off, avail, ok := f.fileRange(vaddr)
	if !ok || avail < size {
		return &FormatError{vaddr, "relocations outside of the file's segments at address", size}
	}
	err := f.each(off+skip, relocationBytes, count, func(_ uint64, b []byte) bool {
		info := binary.LittleEndian.Uint64(b[8:])
		return yield(Relocation{
			Offset: binary.LittleEndian.Uint64(b), Type: uint32(info), Symbol: uint32(info >> 32), Addend: int64(binary.LittleEndian.Uint64(b[16:])),
		})
	})
	if err != nil {
		return fmt.Errorf("read relocations: %w", err)
	}
	return nil
}
