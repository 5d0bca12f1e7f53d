package elffile_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

// sparse is a file of enormous size: its beginning, then zeros. It counts what
// is read.
type sparse struct {
	head  []byte
	bytes int
}

const sparseBytes = 1 << 50

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	s.bytes += len(p)
	clear(p)
	if off < int64(len(s.head)) {
		copy(p, s.head[off:])
	}
	return len(p), nil
}

// hostile changes a library and opens it as a sparse file.
type hostile struct {
	t      *testing.T
	sparse sparse
	oracle *elf.File
}

func newHostile(t *testing.T, args ...string) *hostile {
	return newHostilePath(t, corpus.Library(t, corpus.GCC, args...))
}

func newHostilePath(t *testing.T, path string) *hostile {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	oracle, err := elf.NewFile(bytes.NewReader(b))
	require.NoError(t, err)
	return &hostile{t: t, sparse: sparse{head: b}, oracle: oracle}
}

func (h *hostile) open() *elffile.File {
	f, err := elffile.New(&h.sparse, sparseBytes)
	require.NoError(h.t, err)
	return f
}

// dynamic changes an entry of the dynamic section.
func (h *hostile) dynamic(tag elf.DynTag, value uint64) {
	s := h.oracle.Section(".dynamic")
	for off := s.Offset; off < s.Offset+s.Size; off += 16 {
		if elf.DynTag(binary.LittleEndian.Uint64(h.sparse.head[off:])) == tag {
			binary.LittleEndian.PutUint64(h.sparse.head[off+8:], value)
			return
		}
	}
	h.t.Fatalf("no %v", tag)
}

// endlessSegments makes all segments as large as they can be in the file.
func (h *hostile) endlessSegments() {
	for i, p := range h.oracle.Progs {
		if p.Type == elf.PT_LOAD {
			put64(64+56*i+32, sparseBytes/2)(h.sparse.head)
			put64(64+56*i+40, sparseBytes/2)(h.sparse.head)
		}
	}
}

// section changes the size of a section.
func (h *hostile) section(name string, size uint64) {
	shoff := binary.LittleEndian.Uint64(h.sparse.head[40:])
	for i, s := range h.oracle.Sections {
		if s.Name == name {
			put64(int(shoff)+64*i+32, size)(h.sparse.head)
			return
		}
	}
	h.t.Fatalf("no %s", name)
}

// refused checks for a FormatError about what, after few reads.
func (h *hostile) refused(err error, what string) {
	h.t.Helper()
	var format *elffile.FormatError
	require.ErrorAs(h.t, err, &format)
	require.Contains(h.t, format.Error(), what)
	require.Less(h.t, h.sparse.bytes, 1<<20)
}

func TestHostileHashCycle(t *testing.T) {
	h := newHostile(t, "-Wl,--hash-style=sysv")
	s := h.oracle.Section(".hash")
	table := h.sparse.head[s.Offset : s.Offset+s.Size]
	for off := 8; off < len(table); off += 4 { // all buckets and chains lead to symbol 1
		binary.LittleEndian.PutUint32(table[off:], 1)
	}
	_, _, err := h.open().DynamicSymbol("not there")
	h.refused(err, "length of hash chain")
}

func TestHostileGNUHash(t *testing.T) {
	table := func(h *hostile) []byte {
		s := h.oracle.Section(".gnu.hash")
		return h.sparse.head[s.Offset : s.Offset+s.Size]
	}
	h := newHostile(t, "-Wl,--hash-style=gnu")
	// One bucket, a bloom filter that lets all pass, and a chain of zeros.
	h.sparse.head = append(h.sparse.head, make([]byte, -len(h.sparse.head)&7)...)
	h.dynamic(elf.DT_GNU_HASH, uint64(len(h.sparse.head)))
	for _, v := range []uint32{1, 1, 1, 6, ^uint32(0), ^uint32(0), 1} {
		h.sparse.head = binary.LittleEndian.AppendUint32(h.sparse.head, v)
	}
	h.endlessSegments()
	_, _, err := h.open().DynamicSymbol("custom_labels_current_set")
	h.refused(err, "length of GNU hash chain")

	h = newHostile(t, "-Wl,--hash-style=gnu")
	binary.LittleEndian.PutUint32(table(h)[8:], 3) // not a power of two
	_, _, err = h.open().DynamicSymbol("custom_labels_current_set")
	h.refused(err, "bloom filter")

	h = newHostile(t, "-Wl,--hash-style=gnu")
	binary.LittleEndian.PutUint32(table(h), 1<<31) // buckets, for Functions
	h.endlessSegments()
	err = h.open().Functions(func(elffile.Function) bool { return true })
	h.refused(err, "buckets")
}

func TestHostileRelocations(t *testing.T) {
	all := func(elffile.Relocation) bool { return true }
	h := newHostile(t)
	h.dynamic(elf.DT_RELASZ, 1<<40)
	h.refused(h.open().Relocations(all), "number of relocations")
	h.dynamic(elf.DT_RELASZ, 1<<20)
	h.refused(h.open().Relocations(all), "outside of the file's segments")
	h = newHostile(t)
	h.dynamic(elf.DT_PLTRELSZ, 1<<40)
	h.refused(h.open().Relocations(all), "number of relocations")
	h = newHostile(t)
	h.dynamic(elf.DT_RELACOUNT, 1<<60) // skips all, harmlessly
	require.NoError(t, h.open().Relocations(all))
}

func TestHostileSymbolTable(t *testing.T) {
	h := newHostile(t)
	h.section(".symtab", 1<<40)
	_, _, err := h.open().IntSymbol("x")
	h.refused(err, "number of symbols")
	_, _, err = h.open().TLSSymbol("x")
	h.refused(err, "number of symbols")
	h.refused(h.open().Functions(func(elffile.Function) bool { return true }), "number of symbols")

	h = newHostile(t)
	h.section(".strtab", 1<<51)
	_, _, err = h.open().TLSSymbol("x")
	h.refused(err, "string table outside of the file")

	h = newHostile(t)
	put16(60, 0xff00)(h.sparse.head)
	_, _, err = h.open().TLSSymbol("x")
	h.refused(err, "number of section headers")
}

func TestHostileDynamicSymbols(t *testing.T) {
	h := newHostile(t, "-Wl,--hash-style=sysv")
	h.endlessSegments()
	s := h.oracle.Section(".hash")
	binary.LittleEndian.PutUint32(h.sparse.head[s.Offset+4:], 1<<31)
	h.refused(h.open().Functions(func(elffile.Function) bool { return true }), "number of dynamic symbols")
	h = newHostile(t)
	h.dynamic(elf.DT_SYMTAB, 1<<63)
	_, _, err := h.open().DynamicSymbol("custom_labels_current_set")
	h.refused(err, "outside of the file's segments")
}

// A dynamic section without end stops at its bound.
func TestHostileDynamicSection(t *testing.T) {
	h := newHostile(t)
	for i, p := range h.oracle.Progs {
		if p.Type == elf.PT_DYNAMIC {
			put64(64+56*i+32, sparseBytes/2)(h.sparse.head)
		}
	}
	s := h.oracle.Section(".dynamic")
	for off := s.Offset; off < s.Offset+s.Size; off += 16 { // no DT_NULL
		if binary.LittleEndian.Uint64(h.sparse.head[off:]) == 0 {
			binary.LittleEndian.PutUint64(h.sparse.head[off:], uint64(elf.DT_DEBUG))
		}
	}
	_ = h.open().IsExecutable()
	require.Less(t, h.sparse.bytes, 256<<10)
}
