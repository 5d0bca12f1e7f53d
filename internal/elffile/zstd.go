package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
)

// zstdReader decompresses a compressed section. The standard library's decoder
// is within reach by debug/elf alone, so it is shown an ELF file that has this
// section and no other. It keeps at most 8 MiB of what it has written, whatever window
// the section asks for.
func zstdReader(section io.ReaderAt, bytesCompressed int64) (io.Reader, error) {
	const contents = headerBytes + 3*sectionBytes + 1
	var h bytes.Buffer
	put := func(fields ...any) {
		for _, f := range fields {
			_ = binary.Write(&h, binary.LittleEndian, f) // a Buffer takes everything
		}
	}
	put(elf.Header64{
		Ident: [elf.EI_NIDENT]byte{
			0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT),
		},
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Shoff: headerBytes, Ehsize: headerBytes, Shentsize: sectionBytes, Shnum: 3, Shstrndx: 2,
	})
	put(elf.Section64{}, elf.Section64{
		Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_COMPRESSED), Off: contents, Size: uint64(bytesCompressed),
	}, elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: contents - 1, Size: 1}, byte(0))
	f, err := elf.NewFile(&joined{head: h.Bytes(), tail: section})
	if err != nil {
		return nil, fmt.Errorf("decompress section: %w", err)
	}
	return f.Sections[1].Open(), nil
}

// joined reads some bytes, then another reader.
type joined struct {
	head []byte
	tail io.ReaderAt
}

// ReadAt reads across the seam, if need be.
func (j *joined) ReadAt(p []byte, off int64) (n int, err error) {
	if off < int64(len(j.head)) {
		n = copy(p, j.head[off:])
		off, p = int64(len(j.head)), p[n:]
	}
	if len(p) == 0 {
		return n, nil
	}
	m, err := j.tail.ReadAt(p, off-int64(len(j.head)))
	return n + m, err
}
