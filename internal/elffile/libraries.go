package elffile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

const (
	// maxLibraries bounds the libraries that are returned of one file.
	maxLibraries = 1024
	// maxLibraryNameBytes bounds their names: NAME_MAX, and a path before it.
	maxLibraryNameBytes = 512
)

// Libraries returns the name that a library is asked for by (DT_SONAME), "" if it
// has none, and the names of those that the file asks for (DT_NEEDED). A file
// without a dynamic section has neither.
func (f *File) Libraries() (soname string, needed []string, err error) {
	d, err := f.dyn()
	s, ok := f.segment(elf.PT_DYNAMIC)
	if err != nil || !ok || d.strtab == 0 {
		return "", nil, err
	}
	var own []uint64 // offsets in DT_STRTAB
	var others []uint64
	err = f.each(s.Offset, dynamicBytes, min(s.Filesz/dynamicBytes, maxDynamicEntries), func(_ uint64, b []byte) bool {
		tag, val := elf.DynTag(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])
		switch {
		case tag == elf.DT_SONAME:
			own = append(own[:0], val)
		case tag == elf.DT_NEEDED && len(others) < maxLibraries:
			others = append(others, val)
		}
		return tag != elf.DT_NULL
	})
	if err != nil {
		return "", nil, fmt.Errorf("read dynamic section: %w", err)
	}
	for _, off := range own {
		if soname, err = f.libraryName(d, off); err != nil {
			return "", nil, err
		}
	}
	for _, off := range others {
		name, err := f.libraryName(d, off)
		if err != nil {
			return "", nil, err
		}
		needed = append(needed, name)
	}
	return soname, needed, nil
}

// libraryName reads a name in DT_STRTAB.
func (f *File) libraryName(d *dynamic, offset uint64) (string, error) {
	if offset >= d.strsz {
		return "", &FormatError{d.strtab, "library name outside of the string table at", offset}
	}
	n := min(d.strsz-offset, maxLibraryNameBytes)
	off, avail, ok := f.fileRange(d.strtab + offset)
	if !ok {
		return "", &FormatError{d.strtab, "library name outside of the file's segments at", offset}
	}
	b := make([]byte, min(n, avail))
	if err := f.read(b, off); err != nil {
		return "", fmt.Errorf("read library name: %w", err)
	}
	return string(beforeNUL(b)), nil
}
