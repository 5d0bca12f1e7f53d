package gopclntab

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// image is a table in memory, described as Find would.
type image struct {
	data  []byte
	table Table
}

// newImage makes a table of the current format with functions of 16 bytes each, from
// address 0x1000 on. One has the tables of pc-values given, at offset 1, 2, ... each.
func newImage(functions int, values []byte, tree []byte) *image {
	h := header{current: true, functions: uint64(functions), names: headerBytes}
	names := []byte("outer\x00inner\x00")
	units := binary.LittleEndian.AppendUint32(nil, 0)
	files := []byte("file.go\x00")
	pcs := append([]byte{0}, values...)
	h.units = h.names + uint64(len(names))
	h.files = h.units + uint64(len(units))
	h.values = h.files + uint64(len(files))
	h.code = h.values + uint64(len(pcs))
	code := make([]byte, (functions+1)*functabBytes)
	const funcBytes = funcBytes120 + 4*3 + 4*4
	for i := range functions {
		at := len(code)
		binary.LittleEndian.PutUint32(code[i*functabBytes:], uint32(16*i))
		binary.LittleEndian.PutUint32(code[i*functabBytes+4:], uint32(at))
		code = append(code, make([]byte, funcBytes)...)
		f := code[at:]
		binary.LittleEndian.PutUint32(f, uint32(16*i))
		for _, off := range []int{16, 20, 24} { // pcsp, pcfile, pcln
			binary.LittleEndian.PutUint32(f[off:], 1)
		}
		binary.LittleEndian.PutUint32(f[28:], 3)
		f[43] = 4
		binary.LittleEndian.PutUint32(f[funcBytes120+4*pcdataTree:], 1)
	}
	binary.LittleEndian.PutUint32(code[functions*functabBytes:], uint32(16*functions))
	data := make([]byte, headerBytes)
	for _, b := range [][]byte{names, units, files, pcs, code} {
		data = append(data, b...)
	}
	t := Table{header: h, quantum: 1, text: 0x1000, Start: 0x1000, Limit: 0x1000 + 16*uint64(functions), size: uint64(len(data))}
	t.inlined = t.size
	data = append(data, tree...)
	t.inlinedBytes = uint64(len(tree))
	return &image{data, t}
}

func (m *image) reader() *Reader { return NewReader(m.table, bytes.NewReader(m.data)) }

// inlinedCallBytes is runtime.inlinedCall.
func inlinedCallBytes(name, parentPC, line uint32) []byte {
	b := make([]byte, 4, 16)
	for _, v := range []uint32{name, parentPC, line} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// all16 is a pc-value table: value 0 for 16 bytes.
var all16 = []byte{2, 16, 0}

func TestImage(t *testing.T) {
	// Value -1 at the last 8 bytes: the call comes from there.
	m := newImage(3, []byte{2, 8, 1, 8, 0}, inlinedCallBytes(6, 12, 7))
	r := m.reader()
	frames, err := r.Frames(nil, 0x1010)
	require.NoError(t, err)
	require.Equal(t, []Frame{{Function: "inner", File: "file.go", StartLine: 7}, {Function: "outer", File: "", StartLine: 0}}, frames)
	frames, err = r.Frames(nil, 0x1018)
	require.NoError(t, err)
	require.Equal(t, []Frame{{Function: "outer", File: "", StartLine: 0}}, frames)
	for _, pc := range []uint64{0, 0xfff, 0x1030, 1<<64 - 1} {
		frames, err = r.Frames(nil, pc)
		require.NoError(t, err)
		require.Empty(t, frames)
	}
}

// An inlined call that comes from itself.
func TestCycle(t *testing.T) {
	frames, err := newImage(1, all16, inlinedCallBytes(6, 0, 7)).reader().Frames(nil, 0x1000)
	require.NoError(t, err)
	require.Equal(t, []Frame{{Function: "outer", File: "file.go", StartLine: 0}}, frames)
}

// Trees that lead nowhere leave the function itself.
func TestBadTree(t *testing.T) {
	for what, tree := range map[string][]byte{
		"short":                    {1},
		"name outside":             inlinedCallBytes(1<<20, 8, 1),
		"name inside of another":   inlinedCallBytes(7, 8, 1),
		"parent outside":           inlinedCallBytes(6, 1<<30, 1),
		"parent behind the end":    inlinedCallBytes(6, 16, 1),
		"name at the table's end":  inlinedCallBytes(12, 8, 1),
		"name is the empty string": inlinedCallBytes(5, 8, 1),
	} {
		frames, err := newImage(1, all16, tree).reader().Frames(nil, 0x1000)
		require.NoError(t, err, what)
		require.Equal(t, []Frame{{Function: "outer", File: "file.go", StartLine: 0}}, frames, what)
	}
}

// counted is a file of which it is known how much was read.
type counted struct {
	io.ReaderAt
	bytes int
}

func (c *counted) ReadAt(b []byte, off int64) (int, error) {
	c.bytes += len(b)
	return c.ReaderAt.ReadAt(b, off)
}

// A pc-value table that never gets anywhere, or never ends.
func TestEndlessValues(t *testing.T) {
	values := bytes.Repeat([]byte{2, 0}, 8<<20)
	m := newImage(1, values, nil)
	read := &counted{ReaderAt: bytes.NewReader(m.data)}
	r := NewReader(m.table, read)
	frames, err := r.Frames(nil, 0x1000)
	require.NoError(t, err)
	require.Equal(t, []Frame{{Function: "outer", File: "", StartLine: 0}}, frames)
	const tables = 3 // files, lines and inlined calls; a step is two bytes
	require.Less(t, read.bytes, tables*2*maxSteps+1<<20)
	f, ok, err := r.Func(0x1000)
	require.NoError(t, err)
	require.True(t, ok)
	steps := 0
	require.Error(t, r.StackDeltas(&f, func(uint64, int32) bool { steps++; return true }))
	require.LessOrEqual(t, steps, maxSteps)

	for _, bad := range [][]byte{{2}, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80}, {2, 0x80}} {
		_, err := newImage(1, bad, nil).reader().value(1, &Func{Entry: 0x1000, End: 0x1010}, 0x1000)
		require.Error(t, err)
	}
}

// slowValues is a pc-value table like all16 that gets there late.
func slowValues(steps int) []byte {
	values := []byte{2, 0}
	for range steps/2 - 1 {
		values = append(values, 2, 0, 1, 0)
	}
	return append(values, 2, 0, 1, 16, 0)
}

// What is taken for one address, and for all of a file, has a bound, and is told.
func TestSteps(t *testing.T) {
	outer := []Frame{{Function: "outer"}}
	called := inlinedCallBytes(6, 0, 7) // by itself: as deep as may be
	var format *elffile.FormatError
	frames, err := newImage(1, slowValues(1000), called).reader().Frames(nil, 0x1000)
	require.NoError(t, err)
	require.Equal(t, "file.go", frames[0].File)
	r := newImage(1, slowValues(40_000), called).reader()
	for range MaxFileSteps/maxAddressSteps - 1 {
		before := r.steps.taken
		frames, err = r.Frames(nil, 0x1000)
		require.ErrorAs(t, err, &format)
		require.Equal(t, outer, frames)
		require.Less(t, r.steps.taken-before, maxAddressSteps+100)
	}
	f, ok, err := r.Func(0x1000)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, r.StackDeltas(&f, func(uint64, int32) bool { return true }), "another address, for another one")
	_, err = r.Frames(nil, 0x1000)
	require.ErrorIs(t, err, ErrSteps)
	require.ErrorIs(t, r.StackDeltas(&f, func(uint64, int32) bool { return true }), ErrSteps)
	require.Less(t, r.steps.taken, MaxFileSteps+1000)
}

// Names count, too.
func TestNameSteps(t *testing.T) {
	r := newImage(1, all16, nil).reader()
	f, _, err := r.Func(0x1000)
	require.NoError(t, err)
	r.steps.taken = MaxFileSteps
	_, err = r.Name(&f)
	require.ErrorIs(t, err, ErrSteps)
}

// A file that has become shorter.
func TestTruncated(t *testing.T) {
	m := newImage(100, all16, nil)
	for n := 0; n < len(m.data); n += 7 {
		r := NewReader(m.table, bytes.NewReader(m.data[:n]))
		for pc := m.table.Start; pc < m.table.Limit; pc += 16 {
			_, _ = r.Frames(nil, pc)
		}
		_ = r.Functions(func(Func) bool { return true })
	}
}

// Memory is bounded, whatever is read.
func TestReaderBounded(t *testing.T) {
	data, err := os.ReadFile(testutil.BuildGoTables(t)[0])
	require.NoError(t, err)
	_, r := find(t, data)
	require.NoError(t, r.Functions(func(f Func) bool {
		_, err := r.Name(&f)
		require.NoError(t, err)
		_, err = r.Frames(nil, f.Entry)
		require.NoError(t, err)
		return true
	}))
	require.LessOrEqual(t, len(r.pages.slots), maxPages)
	require.LessOrEqual(t, len(r.pages.byPage), maxPages)
	require.LessOrEqual(t, len(r.names), maxKeptNames)
	require.LessOrEqual(t, r.Bytes(), maxPages*pageBytes+maxKeptBytes)
}

// Long names are kept as far as there is room for them, and count.
func TestLongNamesBounded(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 1<<20)
	r := NewReader(Table{header: header{units: uint64(len(data))}}, bytes.NewReader(data))
	most := 0
	for off := range uint32(4 * maxKeptBytes / maxNameBytes) {
		name, err := r.name(off)
		require.NoError(t, err)
		require.Len(t, name, maxNameBytes)
		kept := 0
		for _, s := range r.names {
			kept += keptBytes + len(s)
		}
		require.Equal(t, kept+len(r.pages.slots)*pageBytes, r.Bytes())
		most = max(most, kept)
	}
	require.LessOrEqual(t, most, maxKeptBytes)
	require.Greater(t, most, maxKeptBytes-2*maxNameBytes)
}

// Memory of a Reader is given back, and one that is read on has other memory.
func TestClose(t *testing.T) {
	m := newImage(1, all16, nil)
	r := m.reader()
	want, err := r.Frames(nil, 0x1000)
	require.NoError(t, err)
	memory := r.pages.memory
	require.Len(t, memory, maxPages*pageBytes)
	freed, free := 0, r.free
	r.free = func() { freed++; free() }
	r.Close()
	require.Equal(t, 1, freed)
	require.Empty(t, r.pages.memory)
	require.Zero(t, r.Bytes()-r.kept)
	got, err := r.Frames(nil, 0x1000)
	require.NoError(t, err)
	require.Equal(t, want, got)
	r.Close()
}
