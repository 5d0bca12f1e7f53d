package elffile

import (
	"bufio"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
)

const (
	// compressionBytes is sizeof(Elf64_Chdr).
	compressionBytes = 24

	// maxUnpackedBytes bounds the size that a compressed section says it has without
	// compression. The debug information of the largest programs has some hundred MiB.
	maxUnpackedBytes = 1 << 30

	// A compressed section takes at most 1/packedShare more than without compression, and
	// packedExtraBytes: what a compressor adds to bytes that do not get shorter. So blocks
	// that unpack to nothing are few.
	packedShare      = 64
	packedExtraBytes = 1 << 10

	// stepBytes are read or unpacked between two calls of the function of Pace.
	stepBytes = 64 << 10
)

// Pace has step called after each 64 KiB that are read of the file, that are
// unpacked, or that Work is told of. Its error ends the reading.
func (f *File) Pace(step func() error) { f.step = step }

// Work tells that a reader of the file has gone through so many bytes. It returns the
// error of the function of Pace.
func (f *File) Work(bytes int) error {
	if f.worked += bytes; f.worked < stepBytes {
		return nil
	}
	f.worked %= stepBytes
	if f.step == nil {
		return nil
	}
	return f.step()
}

// contents reads a section, which is work. Once that is too much, it reads no more.
type contents struct {
	f   *File
	off int64 // of the section in the file
	err error // of File.Work
}

// ReadAt reads from an offset in the section.
func (c *contents) ReadAt(p []byte, off int64) (n int, err error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err = c.f.r.ReadAt(p, c.off+off)
	if c.err = c.f.Work(n); c.err != nil {
		return 0, c.err
	}
	return n, err
}

// unpacked is what a decoder makes of a section, which is work, too.
type unpacked struct {
	r      io.Reader
	packed *contents
}

// Read returns the error of File.Work as it is: decoders hide it in their own.
func (u *unpacked) Read(p []byte) (n int, err error) {
	n, err = u.r.Read(p[:min(len(p), stepBytes)])
	if u.packed.err == nil {
		u.packed.err = u.packed.f.Work(n)
	}
	if u.packed.err != nil {
		return 0, u.packed.err
	}
	return n, err
}

// unpack returns a reader of a compressed section, which ends at the size that the section
// says it has, or after maxBytes.
func (f *File) unpack(s Section, maxBytes int64) (io.Reader, error) {
	if s.Size < compressionBytes {
		return nil, &FormatError{s.Offset, "length of a compressed section", s.Size}
	}
	b, err := f.small(compressionBytes, s.Offset)
	if err != nil {
		return nil, err
	}
	kind, size := elf.CompressionType(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint64(b[8:])
	if size > maxUnpackedBytes {
		return nil, &FormatError{s.Offset, "length of a section without compression", size}
	}
	if s.Size > size+size/packedShare+packedExtraBytes {
		return nil, &FormatError{s.Offset, "length of a compressed section", s.Size}
	}
	u := &unpacked{packed: &contents{f: f, off: int64(s.Offset)}}
	switch kind {
	case elf.COMPRESS_ZLIB:
		packed := io.NewSectionReader(u.packed, compressionBytes, int64(s.Size-compressionBytes))
		if u.r, err = zlib.NewReader(bufio.NewReaderSize(packed, batchBytes)); err != nil {
			return nil, fmt.Errorf("decompress section at %#x: %w", s.Offset, err)
		}
	case elf.COMPRESS_ZSTD:
		if u.r, err = zstdReader(io.NewSectionReader(u.packed, 0, int64(s.Size)), int64(s.Size)); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%w: compression %v", ErrUnsupported, kind)
	}
	return io.LimitReader(u, min(maxBytes, int64(size))), nil
}
