package elffile_test

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

// All relocations but the leading relative ones, as the sections have them.
func TestRelocations(t *testing.T) {
	paths := append(systemFiles(t), corpus.Library(t, corpus.GCC, "-mtls-dialect=gnu2"), corpus.Library(t, corpus.AArch64GCC))
	total := 0
	for _, path := range paths {
		oracle, err := elf.Open(path)
		require.NoError(t, err)
		relative := uint32(elf.R_X86_64_RELATIVE)
		if oracle.Machine == elf.EM_AARCH64 {
			relative = uint32(elf.R_AARCH64_RELATIVE)
		}
		if oracle.Section(".dynamic") == nil {
			continue
		}
		var want []elffile.Relocation
		for _, s := range oracle.Sections {
			if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 {
				continue
			}
			b, err := s.Data()
			require.NoError(t, err)
			for ; len(b) >= 24; b = b[24:] {
				info := binary.LittleEndian.Uint64(b[8:])
				want = append(want, elffile.Relocation{
					Offset: binary.LittleEndian.Uint64(b), Type: uint32(info), Symbol: uint32(info >> 32),
					Addend: int64(binary.LittleEndian.Uint64(b[16:])),
				})
			}
		}
		leading := 0
		for leading < len(want) && want[leading].Type == relative {
			leading++
		}
		want = want[leading:]
		var got []elffile.Relocation
		require.NoError(t, open(t, path, noSections).Relocations(func(r elffile.Relocation) bool {
			if len(got) > 0 || r.Type != relative { // DT_RELACOUNT may be missing
				got = append(got, r)
			}
			return true
		}))
		require.Equal(t, want, got, path)
		total += len(got)

		calls := 0
		require.NoError(t, open(t, path).Relocations(func(elffile.Relocation) bool { calls++; return false }))
		require.LessOrEqual(t, calls, 1)
	}
	require.Greater(t, total, 1000)
}

func TestReadWord(t *testing.T) {
	f := open(t, corpus.Library(t, corpus.GCC))
	for s := range f.Loads() {
		if s.Flags&elf.PF_W == 0 {
			w, err := f.ReadWord(s.Vaddr)
			require.NoError(t, err)
			if s.Offset == 0 {
				require.EqualValues(t, 0x00010102464c457f, w) // the ELF header
			}
			continue
		}
		w, err := f.ReadWord(s.Vaddr + s.Filesz) // .bss
		require.NoError(t, err)
		require.Zero(t, w)
		_, err = f.ReadWord(s.Vaddr + s.Memsz)
		require.Error(t, err)
		_, err = f.ReadWord(s.Vaddr + s.Filesz - 4) // half of it
		require.Error(t, err)
	}
}
