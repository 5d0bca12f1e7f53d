package elffile_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

const (
	// edgeBytes and edgeAllocated bound what a file with one absurd number may
	// cost when everything is asked of it. Read: two tables of relocations of
	// 24 MiB, which are within the bounds, and all that is small.
	edgeBytes     = 56 << 20
	edgeAllocated = 1 << 20
)

// field is a number in a file.
type field struct {
	name   string
	off    uint64
	widths []int // of the following numbers, bytes
}

// fields are all numbers of a file that the package goes by.
func fields(f *elf.File, b []byte) []field {
	words := func(n, width int) (w []int) {
		for range n {
			w = append(w, width)
		}
		return w
	}
	all := []field{
		{"ELF header", 16, []int{2, 2, 4, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2}},
	}
	phoff, shoff := binary.LittleEndian.Uint64(b[32:]), binary.LittleEndian.Uint64(b[40:])
	for i, p := range f.Progs {
		all = append(all, field{"program header " + p.Type.String(), phoff + 56*uint64(i), []int{4, 4, 8, 8, 8, 8, 8, 8}})
	}
	for i, s := range f.Sections {
		all = append(all, field{"section header " + s.Name, shoff + 64*uint64(i), []int{4, 4, 8, 8, 8, 8, 4, 4, 8, 8}})
		n := func(n uint64) int { return int(min(n, s.Size)) }
		switch s.Name {
		case ".dynamic":
			all = append(all, field{s.Name, s.Offset, words(n(16*40)/8, 8)})
		case ".gnu.hash", ".hash", ".note.gnu.build-id":
			all = append(all, field{s.Name, s.Offset, words(n(64)/4, 4)})
		case ".dynsym", ".symtab":
			all = append(all, field{s.Name, s.Offset + 24, []int{4, 4, 8, 8, 4, 4, 8, 8, 4, 4, 8, 8}[:n(72)/24*4]})
		case ".rela.dyn", ".rela.plt":
			all = append(all, field{s.Name, s.Offset, words(n(96)/8, 8)})
		}
	}
	return all
}

// edges are numbers of a width at which arithmetic goes wrong.
func edges(width, size int) []uint64 {
	switch width {
	case 2:
		return []uint64{0, 1, 0x7fff, 0xff00, 0xffff}
	case 4:
		return []uint64{0, 1, uint64(size), 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1}
	}
	s := uint64(size)
	return []uint64{
		0, 1, 7, s - 1, s, s + 1, 24 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 24 << 32, sparseBytes, 1<<63 - 1, 1 << 63,
		1<<64 - 4096, 1<<64 - 24, 1<<64 - 16, 1<<64 - 8, 1<<64 - 1,
	}
}

// Each number of a file in turn, at each edge, in a file as small as it should
// be, in one of 1 PiB, and in one whose segments are that large too.
func TestEdges(t *testing.T) {
	paths := map[string]string{
		"library":   corpus.Library(t, corpus.GCC, "-Wl,--hash-style=both", "-Wl,--build-id", "-DPAD=40"),
		"aarch64":   corpus.Library(t, corpus.AArch64GCC, "-Wl,--hash-style=gnu"),
		"no-pie":    corpus.Build(t, "host", corpus.GCC, "host.c", "variable.c", "-DLINKED", "-no-pie", "-rdynamic", "-Wl,--hash-style=sysv"),
		"immediate": corpus.Library(t, corpus.GCC, "-Wl,-z,now,-z,pack-relative-relocs", "-ftls-model=initial-exec"),
	}
	for name, path := range paths {
		if testing.Short() && name != "library" {
			continue // the others take as long
		}
		t.Run(name, func(t *testing.T) {
			h := newHostilePath(t, path)
			whole := bytes.Clone(h.sparse.head)
			cases, worst := 0, 0
			for _, f := range fields(h.oracle, whole) {
				off := f.off
				for i, width := range f.widths {
					for _, edge := range edges(width, len(whole)) {
						for _, mode := range []string{"small", "sparse", "endless segments"} {
							copy(h.sparse.head, whole)
							if mode == "endless segments" {
								h.endlessSegments()
							}
							var v [8]byte
							binary.LittleEndian.PutUint64(v[:], edge)
							copy(h.sparse.head[off:off+uint64(width)], v[:])
							size := int64(sparseBytes)
							if mode == "small" {
								size = int64(len(whole))
							}
							what := fmt.Sprintf("%s, number %d = %#x, %s", f.name, i, edge, mode)
							worst = max(worst, bounded(t, what, &h.sparse, size))
							cases++
						}
					}
					off += uint64(width)
				}
			}
			t.Logf("%d files, at most %d bytes read", cases, worst)
			require.Greater(t, cases, 5000)
		})
	}
}

// bounded asks everything of a file and returns the bytes that were read.
func bounded(t *testing.T, what string, r *sparse, size int64) int {
	t.Helper()
	r.bytes = 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if e, err := elffile.New(r, size); err == nil {
		askAll(t, e, int(size))
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; r.bytes > edgeBytes || allocated > edgeAllocated {
		t.Fatalf("%s: %d bytes read, %d allocated", what, r.bytes, allocated)
	}
	return r.bytes
}

// shifting is a file that changes under the reader: each read finds other bytes,
// or fewer, or fails.
type shifting struct {
	b []byte
	r *rand.Rand
}

func (s *shifting) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, s.b[min(off, int64(len(s.b))):])
	switch s.r.IntN(200) {
	case 0:
		n = s.r.IntN(n + 1)
	case 1:
		return 0, errBroken
	}
	for range s.r.IntN(3) {
		if n > 0 {
			p[s.r.IntN(n)] ^= byte(1 << s.r.IntN(8))
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// What was validated in one read must not be believed in the next.
func TestChangingFile(t *testing.T) {
	for _, hash := range []string{"sysv", "gnu"} {
		b, err := os.ReadFile(corpus.Library(t, corpus.GCC, "-Wl,--hash-style="+hash, "-Wl,--build-id"))
		require.NoError(t, err)
		s := shifting{b, rand.New(rand.NewPCG(1, 2))}
		opened := 0
		for range 20_000 {
			if e, err := elffile.New(&s, int64(len(b))); err == nil {
				opened++
				askAll(t, e, len(b))
			}
		}
		require.Greater(t, opened, 5_000)
	}
}
