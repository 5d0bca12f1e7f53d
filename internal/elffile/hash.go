package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

const (
	// maxChain bounds the symbols of one hash bucket that a lookup visits.
	// Linkers aim at less than four.
	maxChain = 1024

	// chainBatch is how many GNU hash values one read fetches.
	chainBatch = 16

	// versionHidden marks, in DT_VERSYM, a definition that only references
	// to its very version see (name@VER, as opposed to name@@VER).
	versionHidden = 0x8000
)

// DynamicSymbol looks up a defined symbol in the dynamic symbol table by way
// of DT_GNU_HASH, or DT_HASH where that is missing. Among versions of a symbol
// the default one wins. ok is false when the file does not define the symbol.
func (f *File) DynamicSymbol(name string) (sym Symbol, ok bool, err error) {
	if name == "" || len(name) >= maxNameBytes {
		return Symbol{}, false, nil
	}
	d, err := f.dyn()
	if err != nil || d.symtab == 0 || d.strtab == 0 {
		return Symbol{}, false, err
	}
	l := lookup{f: f, d: d, name: name}
	switch {
	case d.gnuHash != 0:
		err = l.gnu()
	case d.sysvHash != 0:
		err = l.sysv()
	}
	if err != nil {
		return Symbol{}, false, fmt.Errorf("look up %s: %w", name, err)
	}
	return l.found, l.ok, nil
}

type lookup struct {
	f     *File
	d     *dynamic
	name  string
	found Symbol
	ok    bool
}

// visit compares the symbol at index; done ends the walk of the chain.
func (l *lookup) visit(index uint32) (done bool, err error) {
	r, err := l.f.dynamicSymbol(index)
	if err != nil {
		return false, err
	}
	if elf.SectionIndex(r.section) == elf.SHN_UNDEF {
		return false, nil
	}
	same, err := l.f.dynamicNameIs(r.name, l.name)
	if err != nil || !same {
		return false, err
	}
	hidden := false
	if l.d.versym != 0 {
		b, err := l.f.smallAt(2, l.d.versym+2*uint64(index))
		if err != nil {
			return false, err
		}
		hidden = binary.LittleEndian.Uint16(b)&versionHidden != 0
	}
	if !hidden || !l.ok {
		l.found, l.ok = r.symbol(l.name, index), true
	}
	return !hidden, nil
}

func (l *lookup) gnu() error {
	b, err := l.f.smallAt(16, l.d.gnuHash)
	if err != nil {
		return err
	}
	buckets, firstHashed, bloomWords, shift := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	if buckets == 0 {
		return nil
	}
	if bloomWords == 0 || bloomWords&(bloomWords-1) != 0 || shift >= 32 {
		return &FormatError{l.d.gnuHash, "GNU hash table bloom filter at address", bloomWords}
	}
	h := gnuHash(l.name)
	bloom := l.d.gnuHash + 16
	if b, err = l.f.smallAt(8, bloom+8*uint64(h/64&(bloomWords-1))); err != nil {
		return err
	}
	if mask := uint64(1)<<(h%64) | uint64(1)<<(h>>shift%64); binary.LittleEndian.Uint64(b)&mask != mask {
		return nil
	}
	bucketTable := bloom + 8*uint64(bloomWords)
	if b, err = l.f.smallAt(4, bucketTable+4*uint64(h%buckets)); err != nil {
		return err
	}
	index := binary.LittleEndian.Uint32(b)
	if index == 0 {
		return nil
	}
	if index < firstHashed {
		return &FormatError{bucketTable, "GNU hash table bucket at address", index}
	}
	chain := bucketTable + 4*uint64(buckets)
	return l.gnuChain(h, chain+4*uint64(index-firstHashed), index)
}

// gnuChain walks the hash values from vaddr on, which belong to the symbols
// from index on; bit 0 ends the chain.
func (l *lookup) gnuChain(h uint32, vaddr uint64, index uint32) error {
	for range maxChain / chainBatch {
		off, avail, ok := l.f.fileRange(vaddr)
		n := min(avail/4, chainBatch)
		if !ok || n == 0 {
			return &FormatError{vaddr, "GNU hash chain outside of the file's segments at address", nil}
		}
		var values [4 * chainBatch]byte
		b, err := l.f.small(int(4*n), off)
		if err != nil {
			return err
		}
		copy(values[:], b) // visit reuses the scratch buffer
		for i := range n {
			v := binary.LittleEndian.Uint32(values[4*i:])
			if v|1 == h|1 {
				if done, err := l.visit(index); done || err != nil {
					return err
				}
			}
			if v&1 != 0 {
				return nil
			}
			index++
		}
		vaddr += 4 * n
	}
	return &FormatError{vaddr, "length of GNU hash chain at address", maxChain}
}

func (l *lookup) sysv() error {
	b, err := l.f.smallAt(8, l.d.sysvHash)
	if err != nil {
		return err
	}
	buckets, symbols := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if buckets == 0 {
		return nil
	}
	entry := l.d.sysvHash + 8 + 4*uint64(sysvHash(l.name)%buckets)
	for range maxChain {
		if b, err = l.f.smallAt(4, entry); err != nil {
			return err
		}
		index := binary.LittleEndian.Uint32(b)
		if index == 0 {
			return nil
		}
		if index >= symbols {
			return &FormatError{entry, "hash table entry at address", index}
		}
		if done, err := l.visit(index); done || err != nil {
			return err
		}
		entry = l.d.sysvHash + 8 + 4*(uint64(buckets)+uint64(index))
	}
	return &FormatError{entry, "length of hash chain at address", maxChain}
}

// dynamicNameIs compares a name in DT_STRTAB.
func (f *File) dynamicNameIs(offset uint32, name string) (bool, error) {
	n := uint64(len(name)) + 1
	if uint64(offset)+n > f.dynamic.strsz {
		return false, nil // too short to be it
	}
	off, avail, ok := f.fileRange(f.dynamic.strtab + uint64(offset))
	if !ok || avail < n {
		return false, &FormatError{f.dynamic.strtab, "symbol name outside of the file's segments at address", offset}
	}
	return f.nameIs(off, name)
}

// nameIs compares the NUL-terminated string at a file offset.
func (f *File) nameIs(off uint64, name string) (bool, error) {
	for len(name) > 0 {
		n := min(len(name), len(f.scratch))
		b, err := f.small(n, off)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(b, []byte(name[:n])) {
			return false, nil
		}
		name, off = name[n:], off+uint64(n)
	}
	b, err := f.small(1, off)
	return err == nil && b[0] == 0, err
}

func gnuHash(name string) uint32 {
	h := uint32(5381)
	for i := range len(name) {
		h = h*33 + uint32(name[i])
	}
	return h
}

func sysvHash(name string) uint32 {
	h := uint32(0)
	for i := range len(name) {
		h = h<<4 + uint32(name[i])
		h ^= h >> 24 & 0xf0
		h &= 0x0fffffff
	}
	return h
}
