//go:build linux && (amd64 || arm64)

package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// Offsets in the structures of ELF64.
const (
	elfHeaderSectionOffset = 0x28 // e_shoff
	elfHeaderProgramOffset = 0x20 // e_phoff
	programHeaderBytes     = 56
	programHeaderOffset    = 8  // p_offset
	programHeaderFileSize  = 32 // p_filesz
	dynamicEntryBytes      = 16
	symbolBytes            = 24
	symbolValue            = 8 // st_value
)

// absurd is larger than any file.
const absurd = 1 << 60

// A brokenELF is a way to damage an executable that the kernel and the dynamic
// loader do not mind.
type brokenELF struct {
	name   string
	damage func(t *testing.T, f *elf.File, data []byte)
	// readable: whoever reads it with care still finds the labels.
	readable bool
}

func brokenELFs() []brokenELF {
	return []brokenELF{
		{name: "dynamic-beyond-file", damage: damageDynamicSegment},
		{name: "symbol-beyond-block", damage: damageSymbol},
		{name: "string-table-absurd", damage: damageStringTable, readable: true},
		{name: "sections-beyond-file", readable: true, damage: func(_ *testing.T, _ *elf.File, data []byte) {
			binary.LittleEndian.PutUint64(data[elfHeaderSectionOffset:], absurd)
		}},
	}
}

// write makes a damaged copy of a writer.
func (b brokenELF) write(t *testing.T, variant string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testutil.BuildWriters(t), variant))
	require.NoError(t, err)
	f, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	b.damage(t, f, data)
	path := filepath.Join(t.TempDir(), b.name)
	require.NoError(t, os.WriteFile(path, data, 0o700))
	return path
}

// damageDynamicSegment: the loader goes by the address of the segment, not by its place in the file.
func damageDynamicSegment(t *testing.T, f *elf.File, data []byte) {
	t.Helper()
	for i, p := range f.Progs {
		if p.Type == elf.PT_DYNAMIC {
			at := binary.LittleEndian.Uint64(data[elfHeaderProgramOffset:]) + uint64(i)*programHeaderBytes
			binary.LittleEndian.PutUint64(data[at+programHeaderOffset:], absurd)
			binary.LittleEndian.PutUint64(data[at+programHeaderFileSize:], absurd)
			return
		}
	}
	require.Fail(t, "no dynamic segment")
}

// damageSymbol: nobody but a profiler looks the variable up.
func damageSymbol(t *testing.T, f *elf.File, data []byte) {
	t.Helper()
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	section := f.Section(".dynsym")
	require.NotNil(t, section)
	for i, s := range symbols {
		if s.Name == "custom_labels_current_set" {
			at := section.Offset + uint64(i+1)*symbolBytes // DynamicSymbols leaves out the first, which is none
			binary.LittleEndian.PutUint64(data[at+symbolValue:], absurd)
			return
		}
	}
	require.Fail(t, "no label variable")
}

// damageStringTable: the loader does not look at the size of the table.
func damageStringTable(t *testing.T, f *elf.File, data []byte) {
	t.Helper()
	section := f.Section(".dynamic")
	require.NotNil(t, section)
	for at := section.Offset; at < section.Offset+section.Size; at += dynamicEntryBytes {
		if elf.DynTag(binary.LittleEndian.Uint64(data[at:])) == elf.DT_STRSZ {
			binary.LittleEndian.PutUint64(data[at+8:], absurd)
			return
		}
	}
	require.Fail(t, "no DT_STRSZ")
}
