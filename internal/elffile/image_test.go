package elffile_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// imageBase is the virtual address of an image's first byte, so that an offset
// taken for an address, or the other way round, is noticed.
const imageBase = 0x10000

// image is a small ELF file made in memory: one PT_LOAD over the whole file, a
// dynamic section, and what is put behind. It is meant to be reused.
type image struct {
	b       []byte
	dynamic []byte
	strings []byte
	reader  bytes.Reader
	at      struct{ symtab, gnuHash, sysvHash uint64 } // file offsets
}

// imageSymbol is a symbol of the dynamic symbol table.
type imageSymbol struct {
	name      []byte
	undefined bool
	hidden    bool // its version is not the default one
}

const (
	imageLoad    = 64                // program header of the file
	imageDynamic = imageLoad + 56    // and of the dynamic section
	imageOther   = imageDynamic + 56 // unused unless a test wants it
	imageBody    = imageOther + 56
)

// reset starts a file.
func (m *image) reset() {
	m.b = append(m.b[:0], make([]byte, imageBody)...)
	m.dynamic, m.strings = m.dynamic[:0], append(m.strings[:0], 0)
	copy(m.b, elf.ELFMAG)
	m.b[elf.EI_CLASS], m.b[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	m.b[elf.EI_VERSION], m.b[20] = byte(elf.EV_CURRENT), byte(elf.EV_CURRENT)
	put16(16, uint16(elf.ET_DYN))(m.b)
	put16(18, uint16(elf.EM_X86_64))(m.b)
	put64(32, 64)(m.b)
	put16(54, 56)(m.b)
	put16(56, 3)(m.b)
}

// tag adds an entry to the dynamic section.
func (m *image) tag(tag elf.DynTag, value uint64) {
	m.dynamic = binary.LittleEndian.AppendUint64(m.dynamic, uint64(tag))
	m.dynamic = binary.LittleEndian.AppendUint64(m.dynamic, value)
}

// put appends bytes, aligned, and returns their virtual address.
func (m *image) put(b []byte) uint64 {
	m.align()
	m.b = append(m.b, b...)
	return imageBase + uint64(len(m.b)-len(b))
}

func (m *image) align() {
	for len(m.b)%8 != 0 {
		m.b = append(m.b, 0)
	}
}

func (m *image) words(v ...uint32) {
	for _, w := range v {
		m.b = binary.LittleEndian.AppendUint32(m.b, w)
	}
}

func (m *image) segment(at int, typ elf.ProgType, off, size uint64) {
	binary.LittleEndian.PutUint32(m.b[at:], uint32(typ))
	binary.LittleEndian.PutUint32(m.b[at+4:], uint32(elf.PF_R))
	for i, v := range [...]uint64{off, imageBase + off, imageBase + off, size, size, 8} {
		binary.LittleEndian.PutUint64(m.b[at+8+8*i:], v)
	}
}

// finish writes the dynamic section and the program headers.
func (m *image) finish() []byte {
	if len(m.strings) > 1 {
		m.tag(elf.DT_STRTAB, m.put(m.strings))
		m.tag(elf.DT_STRSZ, uint64(len(m.strings)))
	}
	m.tag(elf.DT_NULL, 0)
	dynamic := m.put(m.dynamic) - imageBase
	m.segment(imageDynamic, elf.PT_DYNAMIC, dynamic, uint64(len(m.dynamic)))
	m.segment(imageLoad, elf.PT_LOAD, 0, uint64(len(m.b)))
	return m.b
}

func (m *image) open() (*elffile.File, error) {
	m.reader.Reset(m.b)
	return elffile.New(&m.reader, int64(len(m.b)))
}

// symbols writes the dynamic symbol table, its versions and, as asked for, its
// hash tables. Symbols must be in the order that the GNU hash table wants. The
// value of a symbol is its index + 1000.
func (m *image) symbols(symbols []imageSymbol, gnu, sysv bool, buckets, firstHashed int, bloomWords, shift uint32) {
	m.align()
	m.at.symtab = uint64(len(m.b))
	m.tag(elf.DT_SYMTAB, imageBase+m.at.symtab)
	m.b = append(m.b, make([]byte, 24)...)
	for i, s := range symbols {
		m.words(uint32(len(m.strings)))
		section := uint16(1)
		if s.undefined {
			section = uint16(elf.SHN_UNDEF)
		}
		m.b = append(m.b, elf.ST_INFO(elf.STB_GLOBAL, elf.STT_TLS), 0)
		m.b = binary.LittleEndian.AppendUint16(m.b, section)
		m.b = binary.LittleEndian.AppendUint64(m.b, uint64(i+1+1000))
		m.b = binary.LittleEndian.AppendUint64(m.b, 8)
		m.strings = append(append(m.strings, s.name...), 0)
	}
	m.align()
	m.tag(elf.DT_VERSYM, imageBase+uint64(len(m.b)))
	m.b = binary.LittleEndian.AppendUint16(m.b, 0)
	for _, s := range symbols {
		version := uint16(2)
		if s.hidden {
			version |= 0x8000
		}
		m.b = binary.LittleEndian.AppendUint16(m.b, version)
	}
	if gnu {
		m.gnuHash(symbols, buckets, firstHashed, bloomWords, shift)
	}
	if sysv {
		m.sysvHash(symbols, buckets)
	}
}

// gnuHash hashes symbols[firstHashed-1:], which are sorted by bucket.
func (m *image) gnuHash(symbols []imageSymbol, buckets, firstHashed int, bloomWords, shift uint32) {
	m.align()
	m.at.gnuHash = uint64(len(m.b))
	m.tag(elf.DT_GNU_HASH, imageBase+m.at.gnuHash)
	m.words(uint32(buckets), uint32(firstHashed), bloomWords, shift)
	bloom := len(m.b)
	m.b = append(m.b, make([]byte, 8*int(bloomWords)+4*buckets)...)
	bucketAt := bloom + 8*int(bloomWords)
	hashed := symbols[firstHashed-1:]
	for i, s := range hashed {
		h := gnuHashOf(s.name)
		word := m.b[bloom+8*int(h/64%bloomWords):]
		binary.LittleEndian.PutUint64(word, binary.LittleEndian.Uint64(word)|1<<(h%64)|1<<(h>>shift%64))
		bucket := m.b[bucketAt+4*int(h%uint32(buckets)):]
		if binary.LittleEndian.Uint32(bucket) == 0 {
			binary.LittleEndian.PutUint32(bucket, uint32(firstHashed+i))
		}
		last := i+1 == len(hashed) || gnuHashOf(hashed[i+1].name)%uint32(buckets) != h%uint32(buckets)
		if h &^= 1; last {
			h |= 1
		}
		m.words(h)
	}
}

// sysvHash hashes all symbols; chains are in the order of the table.
func (m *image) sysvHash(symbols []imageSymbol, buckets int) {
	m.align()
	m.at.sysvHash = uint64(len(m.b))
	m.tag(elf.DT_HASH, imageBase+m.at.sysvHash)
	m.words(uint32(buckets), uint32(len(symbols)+1))
	table := len(m.b)
	m.b = append(m.b, make([]byte, 4*(buckets+len(symbols)+1))...)
	for i, s := range symbols {
		at := table + 4*int(sysvHashOf(s.name)%uint32(buckets))
		for binary.LittleEndian.Uint32(m.b[at:]) != 0 {
			at = table + 4*(buckets+int(binary.LittleEndian.Uint32(m.b[at:])))
		}
		binary.LittleEndian.PutUint32(m.b[at:], uint32(i+1))
	}
}

// gnuHashOf is dl_new_hash of glibc.
func gnuHashOf(name []byte) uint32 {
	h := uint32(5381)
	for _, c := range name {
		h += h<<5 + uint32(c)
	}
	return h
}

// sysvHashOf is elf_hash of the System V ABI.
func sysvHashOf(name []byte) uint32 {
	h := uint32(0)
	for _, c := range name {
		h = h<<4 + uint32(c)
		if g := h & 0xf0000000; g != 0 {
			h ^= g >> 24
			h &^= g
		}
	}
	return h
}

// debug/elf must agree with what the builder means.
func TestImage(t *testing.T) {
	var m image
	m.reset()
	m.symbols([]imageSymbol{{name: []byte("undefined"), undefined: true}, {name: []byte("a")}, {name: []byte("b"), hidden: true}},
		true, true, 1, 2, 1, 6)
	f, err := elf.NewFile(bytes.NewReader(m.finish()))
	require.NoError(t, err)
	require.Len(t, f.Progs, 3)
	require.Equal(t, elf.PT_DYNAMIC, f.Progs[1].Type)
	e, err := m.open()
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		s, ok, err := e.DynamicSymbol(name)
		require.NoError(t, err)
		require.True(t, ok)
		require.EqualValues(t, 1000+s.Index, s.Value)
	}
	_, ok, err := e.DynamicSymbol("undefined")
	require.NoError(t, err)
	require.False(t, ok)
}
