package elffile_test

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

// Dynamic programs have a place for the loader's r_debug, libraries have none.
func TestDebugAddress(t *testing.T) {
	for _, compiler := range []string{corpus.GCC, corpus.MuslGCC, corpus.AArch64GCC} {
		program := corpus.Build(t, "host", compiler, "host.c", "variable.c", "-DLINKED", "-pthread")
		f := open(t, program)
		vaddr, ok := f.DebugAddress()
		require.True(t, ok, compiler)
		// The word in front of it is the tag.
		var tag [8]byte
		require.NoError(t, f.ReadVaddr(tag[:], vaddr-8))
		require.EqualValues(t, elf.DT_DEBUG, binary.LittleEndian.Uint64(tag[:]))
		dynamic, ok := f.Dynamic()
		require.True(t, ok)
		require.Greater(t, vaddr, dynamic.Vaddr)
		require.Less(t, vaddr, dynamic.Vaddr+dynamic.Memsz)

		_, ok = open(t, corpus.Library(t, compiler)).DebugAddress()
		require.False(t, ok, compiler)
	}
	_, ok := open(t, corpus.Build(t, "host", corpus.GCC, "host.c", "variable.c", "-DLINKED", "-pthread", "-static")).DebugAddress()
	require.False(t, ok)
}

func TestReadVaddr(t *testing.T) {
	f := open(t, corpus.Library(t, corpus.GCC))
	var last elffile.Segment
	for s := range f.Loads() {
		last = s
	}
	b := make([]byte, 8)
	require.NoError(t, f.ReadVaddr(b, last.Vaddr+last.Filesz-8))
	var format *elffile.FormatError
	require.ErrorAs(t, f.ReadVaddr(b, last.Vaddr+last.Filesz-7), &format)
	require.ErrorAs(t, f.ReadVaddr(b, 1<<63), &format)
	require.ErrorAs(t, f.ReadVaddr(b, ^uint64(0)), &format)
}
