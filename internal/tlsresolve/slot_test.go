package tlsresolve

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

// Of several relocations the nearest kin wins, then the cheapest model,
// whatever their order.
func TestFinderPreference(t *testing.T) {
	const self, other = 4, 9
	relocations := []struct {
		r    elffile.Relocation
		want slot
	}{
		{elffile.Relocation{Offset: 0x10, Type: uint32(elf.R_X86_64_TPOFF64), Symbol: self, Addend: 8}, slot{InitialExec, 0x10, -8, false}},
		{elffile.Relocation{Offset: 0x20, Type: uint32(elf.R_X86_64_TLSDESC), Symbol: self}, slot{Descriptor, 0x20, 0, false}},
		{elffile.Relocation{Offset: 0x30, Type: uint32(elf.R_X86_64_DTPMOD64), Symbol: self}, slot{GeneralDynamic, 0x30, 0, false}},
		{elffile.Relocation{Offset: 0x40, Type: uint32(elf.R_X86_64_TPOFF64), Addend: 0x18}, slot{InitialExec, 0x40, 0x50 - 0x18, false}},
		{elffile.Relocation{Offset: 0x50, Type: uint32(elf.R_X86_64_TLSDESC), Addend: 0x60}, slot{Descriptor, 0x50, 0x50 - 0x60, false}},
		{elffile.Relocation{Offset: 0x60, Type: uint32(elf.R_X86_64_DTPMOD64)}, slot{GeneralDynamic, 0x60, 0, false}},
	}
	noise := []elffile.Relocation{
		{Offset: 0x70, Type: uint32(elf.R_X86_64_TPOFF64), Symbol: other},
		{Offset: 0x78, Type: uint32(elf.R_X86_64_GLOB_DAT), Symbol: self},
		{Offset: 0x80, Type: uint32(elf.R_X86_64_RELATIVE)},
	}
	for i, best := range relocations {
		for _, backwards := range []bool{false, true} {
			c := finder{types: relocTypesOf(elf.EM_X86_64), sym: elffile.Symbol{Value: 0x50, Index: self}, bestKin: kinNone}
			for _, r := range noise {
				require.True(t, c.add(r))
			}
			for j := i; j < len(relocations); j++ {
				k := j
				if backwards {
					k = len(relocations) - 1 - (j - i)
				}
				c.add(relocations[k].r)
			}
			require.Equal(t, best.want, c.best, "%d %v", i, backwards)
		}
	}
}

// A symbol that is only in .symtab has no index: relocations with symbol 0 are
// the module's, not its own.
func TestFinderHiddenSymbol(t *testing.T) {
	c := finder{types: relocTypesOf(elf.EM_AARCH64), sym: elffile.Symbol{Value: 0x50}, bestKin: kinNone}
	c.add(elffile.Relocation{Offset: 0x10, Type: uint32(elf.R_AARCH64_TLSDESC), Addend: 0x20})
	require.Equal(t, kinModule, c.bestKin)
	require.Equal(t, slot{model: Descriptor, vaddr: 0x10, adjust: 0x30}, c.best)
}

func TestOffsetSlot(t *testing.T) {
	const self = 4
	c := finder{types: relocTypesOf(elf.EM_X86_64), sym: elffile.Symbol{Value: 0x50, Index: self}, bestKin: kinNone}
	c.add(elffile.Relocation{Offset: 0x28, Type: uint32(elf.R_X86_64_DTPOFF64), Symbol: self})
	c.add(elffile.Relocation{Offset: 0x38, Type: uint32(elf.R_X86_64_DTPOFF64), Symbol: self, Addend: 8})
	c.add(elffile.Relocation{Offset: 0x30, Type: uint32(elf.R_X86_64_DTPMOD64), Symbol: self})
	c.pairOffset()
	require.Equal(t, slot{GeneralDynamic, 0x30, -8, true}, c.best)
}

// Module id and offset are relocated one after the other.
func TestResolveGeneralDynamic(t *testing.T) {
	p := Plan{machine: elf.EM_X86_64, model: GeneralDynamic, slot: 0x1000, value: 0x50, offsetSlot: true}
	env := Target{Machine: elf.EM_X86_64, Libc: Glibc}
	tests := []struct {
		module, offset uint64
		want           Location
		err            error
	}{
		{0, 0, Location{}, ErrNotRelocated},
		{3, 0, Location{}, ErrNotRelocated},
		{3, 0x50, Location{record.TLSDTVGlibc, 0x50, 3, 0}, nil},
		{1, 0x8, Location{record.TLSDTVGlibc, 0x8, 1, 0}, nil}, // interposed
		{1 << 40, 0x50, Location{}, ErrImplausible},
	}
	for _, test := range tests {
		got, err := p.Resolve(words{0x1000: test.module, 0x1008: test.offset}, 0, env)
		require.ErrorIs(t, err, test.err, "%+v", test)
		require.Equal(t, test.want, got)
	}
	// Bound by the linker: the word behind the module id is not ours to read.
	p.offsetSlot = false
	got, err := p.Resolve(words{0x1000: 3, 0x1008: 0x999}, 0, env)
	require.NoError(t, err)
	require.Equal(t, Location{record.TLSDTVGlibc, 0x50, 3, 0}, got)
}

// An executable's own TPOFF64 slot must agree with the formula.
func TestResolveLocalExecSlot(t *testing.T) {
	p := Plan{machine: elf.EM_X86_64, model: LocalExec, offset: -16, slot: 0x1000}
	env := Target{Machine: elf.EM_X86_64}
	got, err := p.Resolve(words{0x1000: ^uint64(15)}, 0, env)
	require.NoError(t, err)
	require.Equal(t, Location{Offset: -16}, got)
	_, err = p.Resolve(words{0x1000: ^uint64(23)}, 0, env)
	require.ErrorIs(t, err, ErrImplausible)
	_, err = p.Resolve(words{0x1000: 0}, 0, env)
	require.ErrorIs(t, err, ErrNotRelocated)
	_, err = p.Resolve(words{}, 0, env)
	require.ErrorIs(t, err, fakemem.ErrUnmapped)
}
