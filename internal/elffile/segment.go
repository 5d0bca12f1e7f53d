package elffile

import (
	"debug/elf"
	"encoding/binary"
	"iter"
	"slices"
)

// maxPageBytes is the largest page size of the supported machines: a mapping
// of a segment starts at the segment's offset rounded down to a page.
const maxPageBytes = 64 << 10

// Segment is a program header. All sizes are in bytes.
type Segment struct {
	Type   elf.ProgType
	Flags  elf.ProgFlag
	Offset uint64 // in the file
	Vaddr  uint64
	Filesz uint64
	Memsz  uint64
	Align  uint64
}

func parseSegment(b []byte) Segment {
	return Segment{
		Type:   elf.ProgType(binary.LittleEndian.Uint32(b)),
		Flags:  elf.ProgFlag(binary.LittleEndian.Uint32(b[4:])),
		Offset: binary.LittleEndian.Uint64(b[8:]),
		Vaddr:  binary.LittleEndian.Uint64(b[16:]),
		Filesz: binary.LittleEndian.Uint64(b[32:]),
		Memsz:  binary.LittleEndian.Uint64(b[40:]),
		Align:  binary.LittleEndian.Uint64(b[48:]),
	}
}

// Progs returns all program headers. The slice belongs to the File.
func (f *File) Progs() []Segment { return f.segments }

// TLS returns the template of the file's thread-local storage, if it has any.
func (f *File) TLS() (Segment, bool) { return f.segment(elf.PT_TLS) }

// Dynamic returns the segment of the dynamic section, if there is one.
func (f *File) Dynamic() (Segment, bool) { return f.segment(elf.PT_DYNAMIC) }

// Loads yields the segments that the loader maps, in the order of the file.
func (f *File) Loads() iter.Seq[Segment] {
	return func(yield func(Segment) bool) {
		for _, s := range f.segments {
			if s.Type == elf.PT_LOAD && !yield(s) {
				return
			}
		}
	}
}

// LoadBias computes what was added to the file's virtual addresses from one
// mapping of it, as the function of that name does.
func (f *File) LoadBias(start, offset uint64, executable bool) (bias uint64, ok bool) {
	return LoadBias(f.Machine, f.segments, start, offset, executable)
}

// LoadBias computes what was added to the virtual addresses of a file with the
// given program headers from one mapping of it: start is the mapping's first
// address, offset its offset in the file, executable whether it may be
// executed. ok is false when no segment can have made such a mapping, or when
// several can and disagree, which an executable mapping hardly ever meets.
func LoadBias(machine elf.Machine, segments []Segment, start, offset uint64, executable bool) (bias uint64, ok bool) {
	for b := range LoadBiases(machine, segments, start, offset, executable) {
		if ok && b != bias {
			return 0, false
		}
		bias, ok = b, true
	}
	return bias, ok
}

// LoadBiases are what LoadBias decides among: one for each segment that can have made the mapping.
//
// For a segment mapped from its offset rounded down to a page:
//
//	start = bias + p_vaddr - (p_offset - offset)
func LoadBiases(machine elf.Machine, segments []Segment, start, offset uint64, executable bool) iter.Seq[uint64] {
	page := uint64(4 << 10)
	if machine == elf.EM_AARCH64 {
		page = maxPageBytes
	}
	return func(yield func(uint64) bool) {
		for _, s := range segments {
			if s.Type != elf.PT_LOAD || (s.Flags&elf.PF_X != 0) != executable || s.Filesz == 0 {
				continue
			}
			// A mapping that begins inside of the segment was split off from it
			// by mprotect or munmap.
			if inside := offset >= s.Offset && offset-s.Offset < s.Filesz; !inside {
				if before := s.Offset - offset; offset > s.Offset || before >= page {
					continue
				}
			}
			if !yield(start - offset + s.Offset - s.Vaddr) {
				return
			}
		}
	}
}

// IsExecutable reports whether the file is a program and not a library. A PIE
// has the type of a library; linkers tell it by DF_1_PIE, older ones by
// DT_DEBUG, which they write for programs only.
func (f *File) IsExecutable() bool {
	if f.Type == elf.ET_EXEC {
		return true
	}
	d, err := f.dyn()
	return err == nil && (d.flags1&uint64(elf.DF_1_PIE) != 0 || d.debug != 0)
}

func (f *File) segment(t elf.ProgType) (Segment, bool) {
	i := slices.IndexFunc(f.segments, func(s Segment) bool { return s.Type == t })
	if i < 0 {
		return Segment{}, false
	}
	return f.segments[i], true
}

// fileRange translates a virtual address to a file offset and says how many
// bytes of the file back the segment from there on.
func (f *File) fileRange(vaddr uint64) (off, n uint64, ok bool) {
	for s := range f.Loads() {
		if d := vaddr - s.Vaddr; vaddr >= s.Vaddr && d < s.Filesz {
			if s.Offset > f.size || d >= f.size-s.Offset {
				return 0, 0, false
			}
			return s.Offset + d, min(s.Filesz-d, f.size-s.Offset-d), true
		}
	}
	return 0, 0, false
}

// FileRange translates a virtual address to an offset in the file, and says how
// many bytes of the file back the segment from there on.
func (f *File) FileRange(vaddr uint64) (off, n uint64, ok bool) { return f.fileRange(vaddr) }

// smallAt is small at a virtual address.
func (f *File) smallAt(n int, vaddr uint64) ([]byte, error) {
	off, avail, ok := f.fileRange(vaddr)
	if !ok || avail < uint64(n) {
		return nil, &FormatError{vaddr, "address outside of the file's segments, bytes", n}
	}
	return f.small(n, off)
}

// ReadVaddr fills p with what the file has at a virtual address. The error is a
// *FormatError when not all of that is backed by the file.
func (f *File) ReadVaddr(p []byte, vaddr uint64) error {
	off, avail, ok := f.fileRange(vaddr)
	if !ok || avail < uint64(len(p)) {
		return &FormatError{vaddr, "address outside of the file's segments, bytes", len(p)}
	}
	return f.read(p, off)
}

// ReadWord reads the 64-bit word that the file has at a virtual address: what
// memory holds there before relocation. It is 0 in zero-initialized memory.
func (f *File) ReadWord(vaddr uint64) (uint64, error) {
	for s := range f.Loads() {
		if d := vaddr - s.Vaddr; vaddr >= s.Vaddr && d >= s.Filesz && d < s.Memsz && s.Memsz-d >= 8 {
			return 0, nil
		}
	}
	b, err := f.smallAt(8, vaddr)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}
