package elffile

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// packedFile has one compressed section, which says that it has size bytes.
func packedFile(kind elf.CompressionType, size uint64, packed []byte) (*File, Section) {
	b := binary.LittleEndian.AppendUint32(nil, uint32(kind))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, size)
	b = append(binary.LittleEndian.AppendUint64(b, 1), packed...)
	return fileOf(string(b)), Section{Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED, Size: uint64(len(b))}
}

// zstdOf is a frame with a window of the largest size there is, and blocks.
func zstdOf(blocks ...[]byte) []byte {
	return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xff}, bytes.Join(blocks, nil)...)
}

// repeated is a block of one byte many times; it is the last one if that is none.
func repeated(times int) []byte {
	header := uint32(times)<<3 | 1<<1
	if times == 0 {
		return []byte{1, 0, 0} // a block of bytes as they are, of which there are none
	}
	return []byte{byte(header), byte(header >> 8), byte(header >> 16), 'x'}
}

func zlibOf(bytesUnpacked int) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(make([]byte, bytesUnpacked))
	_ = w.Close()
	return b.Bytes()
}

// A section ends where it says, also if there is more in it.
func TestUnpackedSize(t *testing.T) {
	const size = 100 << 10
	for kind, packed := range map[elf.CompressionType][]byte{
		elf.COMPRESS_ZLIB: zlibOf(10 * size), elf.COMPRESS_ZSTD: zstdOf(repeated(size), repeated(size), repeated(0)),
	} {
		f, s := packedFile(kind, size, packed)
		r, err := f.Contents(s, 1<<30)
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, r)
		require.NoError(t, err)
		require.EqualValues(t, size, n, kind)
	}
}

// A section that says that it is larger than any, or than its contents can be, is refused.
func TestUnpackedBounds(t *testing.T) {
	var format *FormatError
	for size, packed := range map[uint64]int{maxUnpackedBytes + 1: 100, 6400: 6400 + 100 + packedExtraBytes - compressionBytes + 1} {
		f, s := packedFile(elf.COMPRESS_ZLIB, size, make([]byte, packed))
		_, err := f.Contents(s, 1<<40)
		require.ErrorAs(t, err, &format)
	}
	for size, packed := range map[uint64]int{maxUnpackedBytes: 100, 6400: 6400 + 100 + packedExtraBytes - compressionBytes} {
		f, s := packedFile(elf.COMPRESS_ZSTD, size, make([]byte, packed))
		_, err := f.Contents(s, 1<<40)
		require.NoError(t, err)
	}
}

// Whoever reads is asked again and again whether that may go on: as sections are read, as
// they are unpacked, and as they unpack to nothing.
func TestPace(t *testing.T) {
	enough := errors.New("enough")
	empty := func(blocks int) []byte { return zstdOf(make([]byte, 3*blocks), repeated(0)) }
	plain := Section{Type: elf.SHT_PROGBITS, Size: 1 << 20}
	for name, file := range map[string]func() (*File, Section){
		"plain": func() (*File, Section) { return fileOf(string(make([]byte, 1<<20))), plain },
		"zlib":  func() (*File, Section) { return packedFile(elf.COMPRESS_ZLIB, 1<<20, zlibOf(1<<20)) },
		"zstd": func() (*File, Section) {
			return packedFile(elf.COMPRESS_ZSTD, 1<<20, zstdOf(bytes.Repeat(repeated(1<<17), 8), repeated(0)))
		},
		"no content": func() (*File, Section) { return packedFile(elf.COMPRESS_ZSTD, 1<<20, empty(1<<20/3)) },
	} {
		for _, most := range []int{1, 3} {
			f, s := file()
			steps := 0
			f.Pace(func() error {
				if steps++; steps == most {
					return enough
				}
				return nil
			})
			r, err := f.Contents(s, 1<<30)
			require.NoError(t, err, name)
			n, err := io.Copy(io.Discard, r)
			require.ErrorIs(t, err, enough, name)
			require.Less(t, n, int64(1<<20), name)
			require.Equal(t, most, steps, "%s: it does not go on", name)
		}
		f, s := file()
		r, err := f.Contents(s, 1<<30)
		require.NoError(t, err, name)
		_, err = io.Copy(io.Discard, r)
		require.NoError(t, err, name)
	}
}

// The same holds for tables, of symbols and relocations, and for names.
func TestPaceOfTables(t *testing.T) {
	enough := errors.New("enough")
	const size = 1 << 20
	for name, read := range map[string]func(f *File, each func()) error{
		"entries": func(f *File, each func()) error {
			return f.each(0, symbolBytes, size/symbolBytes, func(uint64, []byte) bool { each(); return true })
		},
		"names": func(f *File, each func()) error {
			names := window{f: f, t: table{strSize: size}}
			for off := uint32(0); off < size; off += maxNameBytes {
				if _, err := names.at(off); err != nil {
					return err
				}
				each()
			}
			return nil
		},
	} {
		for _, most := range []int{1, 3, 1000} {
			f := fileOf(strings.Repeat("x", size))
			steps, entries, after := 0, 0, 0
			f.Pace(func() error {
				if steps++; steps >= most {
					return enough
				}
				return nil
			})
			err := read(f, func() {
				entries++
				if steps >= most {
					after++
				}
			})
			if most == 1000 {
				require.NoError(t, err, name)
				require.Greater(t, steps, 10, name)
				continue
			}
			require.ErrorIs(t, err, enough, name)
			require.Equal(t, most, steps, name)
			require.NotZero(t, entries, name)
			require.Zero(t, after, name)
		}
	}
}

// Whatever window a section asks for, decompressing it takes little memory.
func TestWindow(t *testing.T) {
	f, s := packedFile(elf.COMPRESS_ZSTD, 64<<20, zstdOf(bytes.Repeat(repeated(1<<17), 512), repeated(0)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := f.Contents(s, 1<<30)
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, r)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.EqualValues(t, 64<<20, n)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}
