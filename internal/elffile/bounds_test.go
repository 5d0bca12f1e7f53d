package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// loaded is a file of 32-bit words, all of them in one segment at its address in the file.
func loaded(words ...uint32) *File {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	f := fileOf(string(b))
	f.segments = []Segment{{Type: elf.PT_LOAD, Filesz: f.size, Memsz: f.size}}
	return f
}

// A table of several batches that ends behind the file is refused before any entry of it
// is handed out.
func TestLongTableBehindTheFile(t *testing.T) {
	f := fileOf(strings.Repeat("x", 3*batchBytes))
	var format *FormatError
	require.ErrorAs(t, f.each(0, 8, 3*batchBytes/8+1, func(uint64, []byte) bool {
		require.Fail(t, "called")
		return true
	}), &format)
}

// Two tables are read while a third is, which finds its bytes as they were: also when the
// buffer is there from before.
func TestNestedTablesAgain(t *testing.T) {
	f := fileOf("abcABC")
	read := func(off uint64, visit func()) (got string) {
		require.NoError(t, f.each(off, 1, 3, func(_ uint64, b []byte) bool {
			visit()
			got += string(b)
			return true
		}))
		return got
	}
	none := func() {}
	require.Equal(t, "abc", read(0, none))
	require.Equal(t, "abc", read(0, func() { require.Equal(t, "ABC", read(3, none)) }))
}

// What memory has behind a segment's bytes of the file is zeros, not what follows there.
func TestBehindTheSegment(t *testing.T) {
	f := fileOf(strings.Repeat("x", 64))
	f.segments = []Segment{{Type: elf.PT_LOAD, Vaddr: 0x1000, Filesz: 16, Memsz: 48}}
	b := make([]byte, 8)
	require.NoError(t, f.ReadVaddr(b, 0x1008))
	var format *FormatError
	for _, vaddr := range []uint64{0x1009, 0x1010, 0x1018} {
		require.ErrorAs(t, f.ReadVaddr(b, vaddr), &format, "%#x", vaddr)
	}
}

// A chain of the older hash table names only symbols that its header counts.
func TestHashChainSymbol(t *testing.T) {
	const buckets, symbols = 1, 2
	f := loaded(buckets, symbols, 7, 0, 0)
	f.dynamic = &dynamic{sysvHash: 0, symtab: 1, strtab: 1}
	_, _, err := f.DynamicSymbol("name")
	require.NoError(t, err, "there is no table")

	f = loaded(0, 0, buckets, symbols, 2, 0, 0)
	f.dynamic = &dynamic{sysvHash: 8, symtab: 1, strtab: 1}
	_, _, err = f.DynamicSymbol("name")
	require.ErrorContains(t, err, "hash table entry")
}

// The first symbols are in no bucket of the GNU hash table.
func TestHashBucketSymbol(t *testing.T) {
	const buckets, firstHashed, bloomWords, shift, anything = 1, 5, 1, 0, 1<<32 - 1
	f := loaded(0, 0, buckets, firstHashed, bloomWords, shift, anything, anything, firstHashed-1)
	f.dynamic = &dynamic{gnuHash: 8, symtab: 1, strtab: 1}
	_, _, err := f.DynamicSymbol("name")
	require.ErrorContains(t, err, "GNU hash table bucket")
}

// A page of aarch64 has up to 64 KiB: so far in front of a segment its mapping may begin.
func TestLoadBiasPages(t *testing.T) {
	segments := []Segment{{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Offset: 0x18910, Vaddr: 0x28910, Filesz: 0x100}}
	const start = 0x7f12_3456_0000
	bias, ok := LoadBias(elf.EM_AARCH64, segments, start, 0x10000, true)
	require.True(t, ok)
	require.EqualValues(t, start-0x20000, bias)
	_, ok = LoadBias(elf.EM_X86_64, segments, start, 0x10000, true)
	require.False(t, ok)
	_, ok = LoadBias(elf.EM_AARCH64, segments, start, 0x8000, true)
	require.False(t, ok)
}

// The relocations that DT_RELACOUNT counts are not looked at, whatever they say.
func TestCountedRelocations(t *testing.T) {
	relocation := func(offset uint32) []uint32 { return []uint32{offset, 0, 1, 2, 0, 0} }
	words := append(append(relocation(10), relocation(20)...), relocation(30)...)
	f := loaded(append([]uint32{0, 0}, words...)...)
	for counted, want := range [][]uint64{{10, 20, 30}, {20, 30}, {30}, nil, nil} {
		f.dynamic = &dynamic{rela: 8, relasz: 3 * relocationBytes, relaCount: uint64(counted)}
		var got []uint64
		require.NoError(t, f.Relocations(func(r Relocation) bool {
			got = append(got, r.Offset)
			return true
		}))
		require.Equal(t, want, got, counted)
	}
}

func TestProgramHeadersAreBounded(t *testing.T) {
	for count, ok := range map[int]bool{maxSegments: true, maxSegments + 1: false} {
		b := make([]byte, headerBytes+count*segmentBytes)
		copy(b, elf.ELFMAG)
		b[elf.EI_CLASS], b[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
		for at, v := range map[int]int{16: int(elf.ET_DYN), 18: int(elf.EM_X86_64), 32: headerBytes, 54: segmentBytes, 56: count} {
			binary.LittleEndian.PutUint16(b[at:], uint16(v))
		}
		_, err := New(bytes.NewReader(b), int64(len(b)))
		if ok {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "number of program headers")
		}
	}
}
