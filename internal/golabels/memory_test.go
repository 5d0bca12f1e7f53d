package golabels

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// maxReadAllocated is more than the reading of a program may allocate on Go's heap, whatever
// its debug information says: buffers, and the decoder of a compressed section.
const maxReadAllocated = 2 << 20

// withDebug gives a program other debug information, compressed with zlib if so asked.
func withDebug(t *testing.T, data []byte, f *elf.File, abbrevs, info []byte, compressed bool) []byte {
	data = bytes.Clone(data)
	for name, contents := range map[string][]byte{".debug_abbrev": abbrevs, ".debug_info": info} {
		flags := uint64(0)
		if compressed {
			contents, flags = pack(t, contents), uint64(elf.SHF_COMPRESSED)
		}
		for i, s := range f.Sections {
			if s.Name != name {
				continue
			}
			// e_shoff + i * sizeof(Elf64_Shdr): sh_flags, sh_offset and sh_size at 8, 24 and 32
			at := binary.LittleEndian.Uint64(data[40:]) + uint64(64*i)
			binary.LittleEndian.PutUint64(data[at+8:], flags)
			binary.LittleEndian.PutUint64(data[at+24:], uint64(len(data)))
			binary.LittleEndian.PutUint64(data[at+32:], uint64(len(contents)))
			data = append(data, contents...)
		}
	}
	return data
}

// pack compresses a section (Elf64_Chdr, then a stream of zlib).
func pack(t *testing.T, contents []byte) []byte {
	var b bytes.Buffer
	require.NoError(t, binary.Write(&b, binary.LittleEndian, elf.Chdr64{
		Type: uint32(elf.COMPRESS_ZLIB), Size: uint64(len(contents)), Addralign: 1,
	}))
	w, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	require.NoError(t, err)
	_, err = w.Write(contents)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// watched tells how much memory there was at each read.
type watched struct {
	r    io.ReaderAt
	peak uint64 // HeapInuse
}

func (w *watched) ReadAt(p []byte, off int64) (int, error) {
	w.peak = max(w.peak, memory().HeapInuse)
	return w.r.ReadAt(p, off)
}

func memory() (m runtime.MemStats) {
	runtime.ReadMemStats(&m)
	return m
}

// Whatever debug information says, reading it takes next to nothing of Go's heap.
func TestMemory(t *testing.T) {
	const unitBytes = 47 << 20
	data, f := program(t, "gowriter-static")
	before, err := planOf(data)
	require.NoError(t, err)
	long := longName(1 << 20)
	for name, c := range map[string]struct {
		abbrevs, info []byte
		most          int // allocated, where that is more than maxReadAllocated
		limited       bool
	}{
		"unit of long names":       {abbrevs: typeAbbrevs(), info: runtimeUnit(bytes.Repeat(long, unitBytes>>20))},
		"unit of one name":         {abbrevs: typeAbbrevs(), info: runtimeUnit(longName(unitBytes))},
		"abbreviations":            {abbrevs: append(typeAbbrevs(), make([]byte, 8<<20)...), info: runtimeUnit(nil)},
		"attributes":               {abbrevs: manyAttributes(), info: runtimeUnit(nil), most: 5 << 20}, // a list grows to 0.8 MiB
		"as many types as kept":    {abbrevs: typeAbbrevs(), info: runtimeUnit(pointers(maxLinks))},
		"more types than are kept": {abbrevs: typeAbbrevs(), info: runtimeUnit(pointers(maxLinks + 1)), limited: true},
	} {
		for _, compressed := range []bool{false, true} {
			changed := withDebug(t, data, f, c.abbrevs, c.info, compressed)
			file := watched{r: bytes.NewReader(changed)}
			e, err := elffile.New(&file, int64(len(changed)))
			require.NoError(t, err)
			runtime.GC()
			start := memory()
			file.peak = 0
			after, err := NewPlan(e)
			allocated := memory().TotalAlloc - start.TotalAlloc
			t.Logf("%s, compressed %t: allocated %.1f MiB, at most %.1f MiB more in use", name, compressed,
				float64(allocated)/(1<<20), (float64(file.peak)-float64(start.HeapInuse))/(1<<20))
			require.NoError(t, err, name)
			require.Equal(t, before.Layout, after.Layout, name)
			require.False(t, after.FromDWARF, name)
			require.Equal(t, c.limited, after.Limited, name)
			require.LessOrEqual(t, allocated, uint64(max(c.most, maxReadAllocated)), name)
		}
	}
}

func longName(n int) []byte {
	return append(append([]byte{codeNamed}, bytes.Repeat([]byte{'x'}, n-2)...), 0)
}

func pointers(n int) []byte { return bytes.Repeat([]byte{codePointer, 0, 0, 0, 0, 0}, n) }

// manyAttributes is a table of as many attributes as abbreviations may have one by one.
func manyAttributes() (b []byte) {
	for code := range maxAbbrevs {
		b = append(binary.AppendUvarint(b, uint64(code+1)), tagMember, 0)
		b = append(b, bytes.Repeat([]byte{attrName, formString}, maxAttributes)...)
		b = append(b, 0, 0)
	}
	return append(b, 0)
}
