package unwind_test

import (
	"debug/elf"
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

const (
	imageText  = 0x400000 // virtual address of the text
	imageFrame = 0x10000  // virtual address of .eh_frame
	imageNames = "\x00.eh_frame\x00.debug_frame\x00"
)

// Pointer encodings.
const (
	absolute = 0x00
	relative = 0x1b // sdata4, relative to the field
)

// image is a small ELF file made in memory: text, and a section of call frame
// information.
type image struct {
	machine elf.Machine
	text    []byte
	frame   []byte
	debug   bool // .debug_frame
	wide    bool // 64-bit DWARF
}

func newImage(textBytes int) *image {
	return &image{machine: elf.EM_X86_64, text: make([]byte, textBytes)}
}

// cie appends a CIE and returns its offset. Its FDEs have augmentation data if
// the augmentation says so; data is that of the CIE.
func (m *image) cie(augmentation string, data, instructions []byte) uint64 {
	b := append([]byte{1}, augmentation...)
	b = append(b, 0, 1, 0x78) // version, alignments of 1 and -8
	if m.machine == elf.EM_AARCH64 {
		b = append(b, 30)
	} else {
		b = append(b, 16)
	}
	if augmentation != "" {
		b = append(append(b, byte(len(data))), data...)
	}
	id := uint64(0)
	if m.debug {
		id = 1<<64 - 1
	}
	return m.entry(id, append(b, instructions...))
}

// entry appends an entry with an id or reference.
func (m *image) entry(id uint64, body []byte) uint64 {
	off := uint64(len(m.frame))
	wideID := m.wide && m.debug
	n := 4 + len(body)
	if wideID {
		n += 4
	}
	if m.wide {
		m.frame = binary.LittleEndian.AppendUint32(m.frame, 0xffffffff)
		m.frame = binary.LittleEndian.AppendUint64(m.frame, uint64(n))
	} else {
		m.frame = binary.LittleEndian.AppendUint32(m.frame, uint32(n))
	}
	if wideID {
		m.frame = binary.LittleEndian.AppendUint64(m.frame, id)
	} else {
		m.frame = binary.LittleEndian.AppendUint32(m.frame, uint32(id))
	}
	m.frame = append(m.frame, body...)
	return off
}

// reference is what an FDE that is appended next has for its CIE.
func (m *image) reference(cie uint64) uint64 {
	switch {
	case m.debug:
		return cie
	case m.wide:
		return uint64(len(m.frame)) + 12 - cie
	}
	return uint64(len(m.frame)) + 4 - cie
}

// fde appends an FDE with addresses of 8 bytes, of an offset in the text.
func (m *image) fde(cie, start, bytes uint64, augmented bool, instructions ...byte) {
	b := binary.LittleEndian.AppendUint64(nil, imageText+start)
	b = binary.LittleEndian.AppendUint64(b, bytes)
	if augmented {
		b = append(b, 0)
	}
	m.entry(m.reference(cie), append(b, instructions...))
}

// bytes makes the file: headers, call frame information, text, section headers.
func (m *image) bytes() []byte {
	le := binary.LittleEndian
	const headers = 64 + 2*56
	frame, text := uint64(headers), uint64(headers+len(m.frame))
	names := text + uint64(len(m.text))
	sections := names + uint64(len(imageNames))

	b := make([]byte, 64, sections+3*64)
	copy(b, elf.ELFMAG)
	b[elf.EI_CLASS], b[elf.EI_DATA], b[elf.EI_VERSION], b[20] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1, 1
	le.PutUint16(b[16:], uint16(elf.ET_DYN))
	le.PutUint16(b[18:], uint16(m.machine))
	le.PutUint64(b[32:], 64)
	le.PutUint64(b[40:], sections)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 2)
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], 3)
	le.PutUint16(b[62:], 2)
	segment := func(flags elf.ProgFlag, off, vaddr, size uint64) {
		b = le.AppendUint32(le.AppendUint32(b, uint32(elf.PT_LOAD)), uint32(flags))
		for _, v := range [...]uint64{off, vaddr, vaddr, size, size, 1} {
			b = le.AppendUint64(b, v)
		}
	}
	segment(elf.PF_R, frame, imageFrame, uint64(len(m.frame)))
	segment(elf.PF_R|elf.PF_X, text, imageText, uint64(len(m.text)))
	b = append(append(append(b, m.frame...), m.text...), imageNames...)
	section := func(name uint32, typ elf.SectionType, addr, off, size uint64) {
		b = le.AppendUint32(le.AppendUint32(b, name), uint32(typ))
		for _, v := range [...]uint64{0, addr, off, size, 0, 1, 0} {
			b = le.AppendUint64(b, v)
		}
	}
	section(0, elf.SHT_NULL, 0, 0, 0)
	if m.debug {
		section(11, elf.SHT_PROGBITS, 0, frame, uint64(len(m.frame)))
	} else {
		section(1, elf.SHT_PROGBITS, imageFrame, frame, uint64(len(m.frame)))
	}
	section(0, elf.SHT_STRTAB, 0, names, uint64(len(imageNames)))
	return b
}

func (m *image) compile() (*unwind.Table, error) { return compile(m.bytes(), unwind.Limits{}) }
