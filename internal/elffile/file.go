package elffile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
)

const (
	headerBytes  = 64 // sizeof(Elf64_Ehdr)
	segmentBytes = 56 // sizeof(Elf64_Phdr)

	// maxSegments bounds e_phnum. Linkers write about a dozen.
	maxSegments = 128

	// maxInterpBytes bounds the path in PT_INTERP (PATH_MAX).
	maxInterpBytes = 4096
)

// File is an open ELF file. It keeps what it has parsed but never the file's
// contents. The reader stays owned by the caller and must outlive the File.
// A File is not safe for concurrent use.
type File struct {
	Machine elf.Machine // EM_X86_64 or EM_AARCH64
	Type    elf.Type    // ET_EXEC or ET_DYN
	Entry   uint64      // virtual address of the entry point

	r        io.ReaderAt
	size     uint64
	segments []Segment

	sectionOffset uint64
	sectionCount  uint16

	dynamic *dynamic // nil until first asked for
	kept    *kept    // the same

	step   func() error // of Pace
	worked int          // bytes since it was called

	scratch [64]byte // small reads; valid until the next one
	batch   []byte   // nil while in use
}

// New reads the file header and the program headers of a file of the given
// size in bytes. The error is ErrNotELF, ErrUnsupported, a *FormatError or one
// of the reader's, maybe wrapped.
func New(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: uint64(max(size, 0))}
	if f.size < headerBytes {
		return nil, ErrNotELF
	}
	h := f.scratch[:headerBytes]
	if err := f.read(h, 0); err != nil {
		return nil, fmt.Errorf("read ELF header: %w", err)
	}
	if string(h[:4]) != elf.ELFMAG {
		return nil, ErrNotELF
	}
	if c := elf.Class(h[elf.EI_CLASS]); c != elf.ELFCLASS64 {
		return nil, fmt.Errorf("%w: class %v", ErrUnsupported, c)
	}
	if d := elf.Data(h[elf.EI_DATA]); d != elf.ELFDATA2LSB {
		return nil, fmt.Errorf("%w: byte order %v", ErrUnsupported, d)
	}
	f.Type = elf.Type(binary.LittleEndian.Uint16(h[16:]))
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return nil, fmt.Errorf("%w: type %v", ErrUnsupported, f.Type)
	}
	f.Machine = elf.Machine(binary.LittleEndian.Uint16(h[18:]))
	if f.Machine != elf.EM_X86_64 && f.Machine != elf.EM_AARCH64 {
		return nil, fmt.Errorf("%w: machine %v", ErrUnsupported, f.Machine)
	}
	f.Entry = binary.LittleEndian.Uint64(h[24:])
	segmentOffset := binary.LittleEndian.Uint64(h[32:])
	f.sectionOffset = binary.LittleEndian.Uint64(h[40:])
	entryBytes, count := binary.LittleEndian.Uint16(h[54:]), binary.LittleEndian.Uint16(h[56:])
	f.sectionCount = binary.LittleEndian.Uint16(h[60:])
	if binary.LittleEndian.Uint16(h[58:]) != sectionBytes {
		f.sectionCount = 0 // nothing that we can read; not needed for what maps
	}
	if entryBytes != segmentBytes {
		return nil, &FormatError{54, "program header size", entryBytes}
	}
	if count == 0 || count > maxSegments {
		return nil, &FormatError{56, "number of program headers", count}
	}
	if err := f.readSegments(segmentOffset, int(count)); err != nil {
		return nil, fmt.Errorf("read program headers: %w", err)
	}
	return f, nil
}

func (f *File) readSegments(off uint64, count int) error {
	f.segments = make([]Segment, 0, count)
	tls := 0
	err := f.each(off, segmentBytes, uint64(count), func(_ uint64, b []byte) bool {
		s := parseSegment(b)
		if s.Type == elf.PT_TLS {
			tls++
		}
		f.segments = append(f.segments, s)
		return true
	})
	if err != nil {
		return err
	}
	if tls > 1 {
		return &FormatError{off, "number of PT_TLS program headers", tls}
	}
	return nil
}

// Source returns what the file is read from, for readers of tables in it.
func (f *File) Source() io.ReaderAt { return f.r }

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return int64(f.size) }

// Interp returns the path of the dynamic loader that the file asks for
// (PT_INTERP), or "" when it names none or one that cannot be read.
func (f *File) Interp() string {
	s, ok := f.segment(elf.PT_INTERP)
	if !ok || s.Filesz == 0 || s.Filesz > maxInterpBytes {
		return ""
	}
	b := make([]byte, s.Filesz)
	if f.read(b, s.Offset) != nil {
		return ""
	}
	return string(beforeNUL(b))
}
