package elffile

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
)

// Section is a section header. All sizes are in bytes.
type Section struct {
	Type   elf.SectionType
	Flags  elf.SectionFlag
	Addr   uint64
	Offset uint64 // in the file
	Size   uint64 // in the file, compressed perhaps
}

// HasSections reports whether the file has section headers.
func (f *File) HasSections() bool { return f.sectionOffset != 0 && f.sectionCount != 0 }

// Section looks up a section by name. ok is false when there is none, or when the
// file has no section headers.
func (f *File) Section(name string) (s Section, ok bool, err error) {
	if !f.HasSections() {
		return Section{}, false, nil
	}
	if f.sectionCount > maxSections {
		return Section{}, false, &FormatError{60, "number of section headers", f.sectionCount}
	}
	b, err := f.small(2, 62)
	if err != nil {
		return Section{}, false, err
	}
	index := uint64(binary.LittleEndian.Uint16(b))
	if index >= uint64(f.sectionCount) {
		return Section{}, false, &FormatError{62, "section of section names", index}
	}
	if b, err = f.small(sectionBytes, f.sectionOffset+sectionBytes*index); err != nil {
		return Section{}, false, err
	}
	names := table{strOff: binary.LittleEndian.Uint64(b[24:]), strSize: binary.LittleEndian.Uint64(b[32:])}
	if names.strOff > f.size || names.strSize > f.size-names.strOff {
		return Section{}, false, &FormatError{names.strOff, "section names outside of the file, bytes", names.strSize}
	}
	w := window{f: f, t: names}
	var nameErr error
	err = f.each(f.sectionOffset, sectionBytes, uint64(f.sectionCount), func(_ uint64, b []byte) bool {
		var got []byte
		if got, nameErr = w.at(binary.LittleEndian.Uint32(b)); nameErr != nil {
			return false
		}
		if ok = string(got) == name; ok {
			s = Section{
				Type: elf.SectionType(binary.LittleEndian.Uint32(b[4:])), Flags: elf.SectionFlag(binary.LittleEndian.Uint64(b[8:])),
				Addr: binary.LittleEndian.Uint64(b[16:]), Offset: binary.LittleEndian.Uint64(b[24:]), Size: binary.LittleEndian.Uint64(b[32:]),
			}
		}
		return !ok
	})
	if err == nil {
		err = nameErr
	}
	if err != nil {
		return Section{}, false, fmt.Errorf("find section %s: %w", name, err)
	}
	return s, ok, nil
}

// Contents returns a reader of what a section holds, decompressed, that ends
// after at most maxBytes. The error is ErrUnsupported for a compression other than
// zlib and zstd, and a *FormatError for a section that is too large without its
// compression. A reader may return any error when the contents are damaged.
func (f *File) Contents(s Section, maxBytes int64) (io.Reader, error) {
	if s.Type == elf.SHT_NOBITS || s.Offset > f.size || s.Size > f.size-s.Offset {
		return nil, &FormatError{s.Offset, "section outside of the file, bytes", s.Size}
	}
	if s.Flags&elf.SHF_COMPRESSED != 0 {
		return f.unpack(s, maxBytes)
	}
	size := min(int64(s.Size), maxBytes)
	plain := io.NewSectionReader(&contents{f: f, off: int64(s.Offset)}, 0, size)
	return bufio.NewReaderSize(plain, int(min(size, batchBytes))), nil
}
