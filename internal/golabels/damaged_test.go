package golabels

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// program returns the bytes of a program, to be changed.
func program(t *testing.T, name string) ([]byte, *elf.File) {
	for _, path := range testutil.BuildGoWriters(t) {
		if filepath.Base(path) == name {
			data := read(t, path)
			f, err := elf.NewFile(bytes.NewReader(data))
			require.NoError(t, err)
			return data, f
		}
	}
	require.FailNow(t, "no program "+name)
	return nil, nil
}

// What a program states about its Go is refused where it cannot be read as a version.
func TestBuildInfo(t *testing.T) {
	data, f := program(t, "gowriter-static")
	info := f.Section(infoSection)
	require.NotNil(t, info)
	for name, c := range map[string]struct {
		change func(info []byte)
		says   string
		format bool
	}{
		"longer than any":    {change: func(b []byte) { binary.PutUvarint(b[infoHeaderBytes:], 1000) }, says: "length of the version", format: true},
		"longer by a byte":   {change: func(b []byte) { binary.PutUvarint(b[infoHeaderBytes:], maxVersionBytes+1) }, says: "length of the version", format: true},
		"no end of a length": {change: func(b []byte) { copy(b[infoHeaderBytes:], bytes.Repeat([]byte{0xff}, 12)) }, says: "length of the version", format: true},
		"before Go 1.18":     {change: func(b []byte) { b[infoFlags] &^= infoFlagInline }, says: "before 1.18"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := bytes.Clone(data)
			c.change(changed[info.Offset : info.Offset+info.Size])
			_, err := planOf(changed)
			require.ErrorContains(t, err, c.says)
			if c.format {
				var format *elffile.FormatError
				require.ErrorAs(t, err, &format)
			} else {
				require.ErrorIs(t, err, ErrVersion)
			}
		})
	}
}

// The variable of the goroutine lies in the thread-local segment, with all of its bytes.
func TestSlotOutsideOfSegment(t *testing.T) {
	data, f := program(t, "gowriter-cgo")
	symbols, err := f.Symbols()
	require.NoError(t, err)
	var size uint64
	for _, p := range f.Progs {
		if p.Type == elf.PT_TLS {
			size = p.Memsz
		}
	}
	name := map[elf.Machine]string{elf.EM_X86_64: "runtime.tlsg", elf.EM_AARCH64: "runtime.tls_g"}[f.Machine]
	for i, s := range symbols {
		if s.Name != name {
			continue
		}
		// sh_offset + i * sizeof(Elf64_Sym) + offsetof(st_value); the first symbol is left out
		at := f.SectionByType(elf.SHT_SYMTAB).Offset + uint64(i+1)*elf.Sym64Size + 8
		require.Equal(t, s.Value, binary.LittleEndian.Uint64(data[at:]))
		for value, outside := range map[uint64]bool{size - wordBytes: false, size - wordBytes + 1: true, size + 1: true} {
			binary.LittleEndian.PutUint64(data[at:], value)
			_, err := planOf(data)
			if !outside {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, "TLS symbol outside of the TLS segment")
		}
		return
	}
	require.FailNow(t, "no symbol "+name)
}
