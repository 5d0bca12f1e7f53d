package unwind_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

const sparseBytes = 1 << 50

// sparse is a file of enormous size: its beginning, then zeros. It counts what is
// read.
type sparse struct {
	head []byte
	read int
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	s.read += len(p)
	clear(p)
	if off < int64(len(s.head)) {
		copy(p, s.head[off:])
	}
	return len(p), nil
}

// cost compiles a file and returns what it took.
func cost(s *sparse, size int64, limits unwind.Limits) (allocated uint64, made *unwind.Table, err error) {
	s.read = 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e, err := elffile.New(s, size)
	if err == nil {
		made, err = unwind.New(e, limits)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, made, err
}

// Numbers of a file at their edges, in a file as small as it should be and in an
// enormous one: what is read stays within the search for trampolines, what is
// allocated within some buffers.
func TestEdges(t *testing.T) {
	const (
		edgeRead      = unwind.DefaultSearchBytes + 8<<20
		goSearch      = 256 << 20 // more, for pclntab in a file without section headers
		edgeAllocated = 6 << 20
	)
	for name, path := range map[string]string{
		"sections":    corpus.Library(t, corpus.GCC, "-nostdlib", "-Wl,--eh-frame-hdr"),
		"no sections": corpus.Library(t, corpus.GCC, "-nostdlib", "-Wl,--eh-frame-hdr"),
		"debug":       debugFrameLibrary(t, corpus.AArch64GCC),
	} {
		t.Run(name, func(t *testing.T) {
			whole, err := os.ReadFile(path)
			require.NoError(t, err)
			if name == "no sections" {
				binary.LittleEndian.PutUint64(whole[40:], 0)
			}
			s := sparse{head: bytes.Clone(whole)}
			cases, mostRead, mostAllocated, tables := 0, 0, uint64(0), 0
			for _, n := range numbers(t, path) {
				mayRead := edgeRead
				if name == "no sections" {
					mayRead += goSearch
				}
				for _, edge := range edges(n.width, len(whole)) {
					for _, size := range []int64{int64(len(whole)), sparseBytes} {
						copy(s.head, whole)
						var v [8]byte
						binary.LittleEndian.PutUint64(v[:], edge)
						copy(s.head[n.off:n.off+uint64(n.width)], v[:])
						allocated, made, err := cost(&s, size, unwind.Limits{})
						if err == nil {
							tables++
							consistent(t, made)
						}
						what := fmt.Sprintf("%d bytes at %#x of %s = %#x, size %d", n.width, n.off, n.what, edge, size)
						require.LessOrEqual(t, s.read, mayRead, what)
						require.LessOrEqual(t, allocated, uint64(edgeAllocated), what)
						mostRead, mostAllocated = max(mostRead, s.read), max(mostAllocated, allocated)
						cases++
					}
				}
			}
			t.Logf("%d files, %d tables, at most %d bytes read and %d allocated", cases, tables, mostRead, mostAllocated)
			require.Greater(t, cases, 2000)
			require.Greater(t, tables, cases/2)
		})
	}
}

// position is that of a number in a file.
type position struct {
	what  string
	off   uint64
	width int
}

// numbers are those that the package goes by: of headers, and all words of the
// sections.
func numbers(t *testing.T, path string) (all []position) {
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for i, p := range f.Progs {
		for field := range uint64(6) {
			all = append(all, position{"program header " + p.Type.String(), 64 + 56*uint64(i) + 8 + 8*field, 8})
		}
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	headers := binary.LittleEndian.Uint64(b[40:])
	for i, s := range f.Sections {
		switch s.Name {
		case ".eh_frame", ".eh_frame_hdr", ".debug_frame":
			for _, field := range []uint64{8, 16, 24, 32} {
				all = append(all, position{"section header " + s.Name, headers + 64*uint64(i) + field, 8})
			}
			for off := uint64(0); off+4 <= min(s.FileSize, 256); off += 2 {
				all = append(all, position{s.Name, s.Offset + off, 4}, position{s.Name, s.Offset + off, 1})
			}
		}
	}
	return all
}

// edges are numbers of a width at which arithmetic goes wrong.
func edges(width, size int) []uint64 {
	switch width {
	case 1:
		return []uint64{0, 1, 0x40, 0x7f, 0x80, 0xff}
	case 4:
		return []uint64{0, 1, uint64(size), 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1}
	}
	s := uint64(size)
	return []uint64{
		0, 1, s - 1, s, s + 1, 1 << 30, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, sparseBytes, 1<<63 - 1, 1 << 63,
		1<<64 - 4096, 1<<64 - 1,
	}
}

// A section as large as it may be, full of the smallest descriptions: what is
// allocated is bounded by Limits.
func TestLargestFile(t *testing.T) {
	m := newImage(1 << 20)
	cie := m.cie("zR", []byte{0x02}, usual) // addresses of 2 bytes: outside
	outside := len(m.frame)
	for range 50_000 {
		m.entry(m.reference(cie), []byte{1, 0, 1, 0, 0})
	}
	t.Logf("%d bytes a description", (len(m.frame)-outside)/50_000)
	plain := m.cie("", nil, usual)
	for i := range uint64(50_000) {
		m.fde(plain, i%1000, 1+i%50_000, false, 0x41, 0x0a, 0x0e, byte(i), 0x41, 0x0b)
	}
	s := sparse{head: m.bytes()}
	allocated, made, err := cost(&s, int64(len(s.head)), unwind.Limits{CodeBytes: 1})
	require.NoError(t, err)
	consistent(t, made)
	t.Logf("%d bytes allocated for %d of descriptions", allocated, len(m.frame))
	require.Less(t, allocated, uint64(3*len(m.frame)))

	_, _, err = cost(&s, int64(len(s.head)), unwind.Limits{Functions: 10_000})
	require.ErrorIs(t, err, unwind.ErrLimit)
	allocated, _, err = cost(&s, int64(len(s.head)), unwind.Limits{Rows: 10_000})
	require.ErrorIs(t, err, unwind.ErrLimit)
	require.Less(t, allocated, uint64(1<<20))
}

// As much text without descriptions as is followed, of each kind that takes long: what is
// allocated is bounded by its size.
func TestMostCode(t *testing.T) {
	for name, c := range map[string]struct {
		machine elf.Machine
		code    string
	}{
		"pushes":        {elf.EM_X86_64, "\x55"},
		"returns":       {elf.EM_X86_64, "\xc3"},
		"pops":          {elf.EM_X86_64, "\x5d\xc3"},
		"calls of each": {elf.EM_X86_64, "\xe8\x01\x00\x00\x00\x90\xc3"},
		"jumps back":    {elf.EM_X86_64, "\x55\x74\xfd"},
		"jumps ahead":   {elf.EM_X86_64, "\x53\x74\x7f\xc3"},
		"switches":      {elf.EM_X86_64, "\x53\xff\xe0"},
		"nothing":       {elf.EM_X86_64, "\x00"},
		"no code":       {elf.EM_X86_64, "\x06"},
		"arm returns":   {elf.EM_AARCH64, "\xc0\x03\x5f\xd6"},
		"arm calls":     {elf.EM_AARCH64, "\x02\x00\x00\x94"},
		"arm frames":    {elf.EM_AARCH64, "\xfd\x7b\xbf\xa9"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newImage(unwind.DefaultCodeBytes)
			m.machine = c.machine
			for at := 0; at < len(m.text); at += copy(m.text[at:], c.code) {
			}
			s := sparse{head: m.bytes()}
			allocated, made, err := cost(&s, int64(len(s.head)), unwind.Limits{})
			if err == nil {
				consistent(t, made)
			} else {
				require.ErrorIs(t, err, unwind.ErrNone)
			}
			t.Logf("%d bytes allocated for %d, %v", allocated, len(m.text), err)
			require.Less(t, allocated, uint64(64*len(m.text)))
		})
	}
}

// Gaps between descriptions of which there are too many to follow are not kept.
func TestManyGaps(t *testing.T) {
	const functions, stride = 200_000, 32
	allocated := map[uint64]uint64{}
	for _, size := range []uint64{1, stride} {
		m := newImage(functions * stride)
		cie := m.cie("", nil, usual)
		for i := range uint64(functions) {
			m.fde(cie, i*stride, size, false)
		}
		s := sparse{head: m.bytes()}
		var err error
		allocated[size], _, err = cost(&s, int64(len(s.head)), unwind.Limits{CodeBytes: 1 << 10})
		require.NoError(t, err)
	}
	t.Logf("%d bytes allocated with gaps, %d without", allocated[1], allocated[stride])
	require.Less(t, allocated[1], allocated[stride]+functions)
}

// Descriptions that take longest: each goes over many instructions.
func TestLongDescriptions(t *testing.T) {
	m := newImage(4096)
	cie := m.cie("", nil, append(bytes.Clone(usual), bytes.Repeat([]byte{0x0a, 0x0b}, 400_000)...))
	for range 100 {
		m.fde(cie, 16, 16, false, bytes.Repeat([]byte{0x86, 2, 0xc6}, 1000)...)
	}
	made, err := m.compile()
	require.NoError(t, err)
	got, _ := made.Lookup(imageText + 16)
	require.Equal(t, pushed(8), got)
}
