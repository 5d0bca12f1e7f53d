package gopclntab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

func open(t testing.TB, data []byte) *elffile.File {
	f, err := elffile.New(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return f
}

// The table is found without section headers.
func TestFindWithoutSections(t *testing.T) {
	for _, path := range testutil.BuildGoTables(t) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		want, err := Find(open(t, data))
		require.NoError(t, err)
		binary.LittleEndian.PutUint64(data[40:], 0) // e_shoff
		got, err := Find(open(t, data))
		require.NoError(t, err, path)
		require.GreaterOrEqual(t, got.size, want.size)
		got.size = want.size // up to the end of the segment
		require.Equal(t, want, got, path)
	}
}

// The moduledata is found by its relocations alone, as some linkers leave it.
func TestFindRelocated(t *testing.T) {
	found := 0
	for _, path := range testutil.BuildGoTables(t) {
		if !strings.Contains(filepath.Base(path), "pie") {
			continue
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		f := open(t, data)
		want, err := Find(f)
		require.NoError(t, err)
		err = f.RelativeRelocations(func(vaddr, _ uint64) bool {
			if off, _, ok := f.FileRange(vaddr); ok {
				clear(data[off : off+8])
			}
			return true
		})
		require.NoError(t, err)
		want.textStart = 0 // was relocated, too
		got, err := Find(open(t, data))
		require.NoError(t, err, path)
		require.Equal(t, want, got, path)
		found++
	}
	require.GreaterOrEqual(t, found, testutil.Size(18, 10, 10))
}

// Without a moduledata there are no inlined calls, and before Go 1.26 there is
// nothing else missing.
func TestFindWithoutModule(t *testing.T) {
	refused := 0
	for _, path := range testutil.BuildGoTables(t) {
		name := filepath.Base(path)
		if !strings.HasPrefix(name, "tables-") || strings.Contains(name, "pie") {
			continue
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		want, r := find(t, data)
		spoilModule(t, data, &want)
		got, err := Find(open(t, data))
		if want.textStart == 0 {
			require.ErrorIs(t, err, ErrNoText, name)
			refused++
			continue
		}
		require.NoError(t, err, name)
		require.Zero(t, got.inlinedBytes)
		want.inlined, want.inlinedBytes = 0, 0
		require.Equal(t, want, got)
		without := NewReader(got, bytes.NewReader(data))
		for pc := got.Start; pc < got.Limit; pc += 997 {
			all, err := r.Frames(nil, pc)
			require.NoError(t, err)
			outer, err := without.Frames(nil, pc)
			require.NoError(t, err)
			require.Len(t, outer, 1)
			require.Equal(t, all[len(all)-1].Function, outer[0].Function)
			require.Equal(t, all[0].Line, outer[0].Line)
		}
	}
	require.NotZero(t, refused)
}

// spoilModule makes the moduledata unrecognizable.
func spoilModule(t testing.TB, data []byte, table *Table) {
	var word [8]byte
	e, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	binary.LittleEndian.PutUint64(word[:], e.Section(".gopclntab").Addr)
	var next [8]byte
	binary.LittleEndian.PutUint64(next[:], e.Section(".gopclntab").Addr+table.names)
	i := bytes.Index(data, slices.Concat(word[:], next[:]))
	require.Positive(t, i)
	clear(data[i : i+8])
}

func TestFindNone(t *testing.T) {
	data, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	_, err = Find(open(t, data))
	require.NoError(t, err)
	path := testutil.BuildGoTables(t)[0]
	data, err = os.ReadFile(path)
	require.NoError(t, err)
	table, err := Find(open(t, data))
	require.NoError(t, err)
	for what, spoil := range map[string]func(header []byte){
		"magic":     func(b []byte) { b[0] = 0xfb },
		"quantum":   func(b []byte) { b[6] = 2 },
		"functions": func(b []byte) { binary.LittleEndian.PutUint64(b[8:], 1<<40) },
		"order":     func(b []byte) { binary.LittleEndian.PutUint64(b[48:], 1) },
		"beyond":    func(b []byte) { binary.LittleEndian.PutUint64(b[64:], table.size+1) },
	} {
		bad := bytes.Clone(data)
		spoil(bad[table.off:])
		_, err := Find(open(t, bad))
		require.ErrorIs(t, err, ErrNone, what)
	}
	// A file that is no Go program is not searched.
	c, err := os.ReadFile("/bin/true")
	require.NoError(t, err)
	_, err = Find(open(t, c))
	require.ErrorIs(t, err, ErrNone)
}
