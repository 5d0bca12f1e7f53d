package gopclntab

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// word is the place of a 32-bit word in an image's table of functions.
func (m *image) word(off int) []byte { return m.data[int(m.table.code)+off:] }

// Functions whose entries contradict each other, or their descriptions, are not handed out.
func TestDisorder(t *testing.T) {
	for what, change := range map[string]func(m *image){
		"ends before it begins":  func(m *image) { binary.LittleEndian.PutUint32(m.word(3*functabBytes), 8) },
		"described as elsewhere": func(m *image) { binary.LittleEndian.PutUint32(m.word(4*functabBytes+2*(funcBytes120+28)), 4) },
	} {
		m := newImage(3, all16, nil)
		change(m)
		var format *elffile.FormatError
		_, ok, err := m.reader().Func(0x1020)
		require.ErrorAs(t, err, &format, what)
		require.False(t, ok, what)
		n := 0
		require.ErrorAs(t, m.reader().Functions(func(Func) bool { n++; return true }), &format, what)
		require.Equal(t, 2, n, what)
	}
}

// A file that has changed since its table was found has no function behind its last one.
func TestBehindTheLast(t *testing.T) {
	m := newImage(3, all16, nil)
	m.table.Limit += 16
	_, ok, err := m.reader().Func(0x102f)
	require.NoError(t, err)
	require.True(t, ok)
	_, ok, err = m.reader().Func(0x1030)
	require.NoError(t, err)
	require.False(t, ok)
}

// What begins in a table and ends behind it is not of that table.
func TestEndOfATable(t *testing.T) {
	r := newImage(1, all16, inlinedCallBytes(6, 0, 7)).reader()
	b := make([]byte, 8)
	code, size := r.t.code, r.t.size
	require.NoError(t, r.read(b, code, size, size-code-8))
	var format *elffile.FormatError
	require.ErrorAs(t, r.read(b, code, size, size-code-7), &format)
	require.ErrorAs(t, r.read(b, code, size, size-code+1), &format)
}

func TestLongName(t *testing.T) {
	const n = maxNameBytes + 1000
	r := NewReader(Table{}, bytes.NewReader(bytes.Repeat([]byte("x"), n)))
	s, err := r.text(0, n, 0)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("x", maxNameBytes), s)
}

// A function without inlined calls says so in place of where its tree is.
func TestNoTree(t *testing.T) {
	const treeOffset = 2*functabBytes + funcBytes120 + 4*3 + 4*funcdataTree
	for tree, has := range map[uint32]bool{0: true, noFuncdata: false} {
		m := newImage(1, all16, nil)
		binary.LittleEndian.PutUint32(m.word(treeOffset), tree)
		r := m.reader()
		f, ok, err := r.Func(0x1000)
		require.NoError(t, err)
		require.True(t, ok)
		_, got, err := r.tree(&f)
		require.NoError(t, err)
		require.Equal(t, has, got)
	}
}

// The name of an inlined call begins where a name does.
func TestWholeName(t *testing.T) {
	r := newImage(1, all16, nil).reader() // "outer\x00inner\x00"
	for off, want := range map[uint32]string{0: "outer", 6: "inner", 1: "", 5: "", 7: ""} {
		s, err := r.wholeName(off)
		require.Equal(t, want, s, off)
		require.Equal(t, want == "", err != nil, off)
	}
}

func TestContains(t *testing.T) {
	table := newImage(3, all16, nil).table
	for pc, want := range map[uint64]bool{0xfff: false, 0x1000: true, 0x102f: true, 0x1030: false} {
		require.Equal(t, want, table.Contains(pc), "%#x", pc)
	}
}
