package tlsresolve_test

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// Where the loader of these tests puts things.
const (
	loadBias   = 0x7f00_0000_0000
	pointer    = 0x7e00_0000_0040 // thread pointer
	vector     = 0x7d00_0000_0010 // DTV
	blockStart = 0x7c00_0000_0100 // dynamic TLS block
	index      = 0x7b00_0000_0000 // argument of a dynamic descriptor
	entry      = 0x7a00_0000_0000 // code of a descriptor
	module     = 5
	generation = 7

	x86Static  = "\xf3\x0f\x1e\xfa\x48\x8b\x40\x08\xc3"
	x86Weak    = "\xf3\x0f\x1e\xfa\x48\x8b\x40\x08\x64\x48\x2b\x04\x25\x00\x00\x00\x00\xc3"
	x86Glibc   = "\xf3\x0f\x1e\xfa\x48\x89\x74\x24\xf0\x64\x48\x8b\x34\x25\x08\x00\x00\x00\x48\x89\x7c\x24\xf8"
	x86Musl    = "\x48\x8b\x40\x08\x52\x64\x48\x8b\x14\x25\x08\x00\x00\x00\x51\x48\x8b\x08"
	armStatic  = "\x00\x04\x40\xf9\xc0\x03\x5f\xd6"
	armBTI     = "\x5f\x24\x03\xd5"
	armNOP     = "\x1f\x20\x03\xd5"
	armWeak    = "\xe1\x0f\x1f\xf8\x00\x04\x40\xf9\x41\xd0\x3b\xd5\x00\x00\x01\xcb\xe1\x07\x41\xf8\xc0\x03\x5f\xd6"
	armDynamic = "\xe1\x0b\xbe\xa9\xe3\x13\x01\xa9\x44\xd0\x3b\xd5\x01\x04\x40\xf9" // stp, stp, mrs x4, ldr
)

// loader does what a dynamic loader does to the TLS relocations of one library,
// from debug/elf's reading of the file.
type loader struct {
	file      *elf.File
	libc      tlsresolve.Libc
	static    bool  // the library's block lies in static TLS
	tlsOffset int64 // of that block from the thread pointer
	memory    memory
}

func load(t *testing.T, path string, libc tlsresolve.Libc, static bool) *loader {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	l := &loader{file: f, libc: libc, static: static, tlsOffset: -0x5000, memory: memory{}}
	if f.Machine == elf.EM_AARCH64 {
		l.tlsOffset = 0x80
	}
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	for _, name := range []string{".rela.dyn", ".rela.plt"} {
		s := f.Section(name)
		if s == nil {
			continue
		}
		b, err := s.Data()
		require.NoError(t, err)
		for ; len(b) > 0; b = b[24:] {
			offset, info := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
			value := binary.LittleEndian.Uint64(b[16:]) // the addend
			if i := info >> 32; i != 0 {
				value += symbols[i-1].Value
			}
			l.relocate(uint32(info), loadBias+offset, value)
		}
	}
	l.threads()
	return l
}

// relocate writes the words of one relocation against offset value of the
// library's TLS block.
func (l *loader) relocate(typ uint32, slot, value uint64) {
	switch typ {
	case uint32(elf.R_X86_64_TPOFF64), uint32(elf.R_AARCH64_TLS_TPREL64):
		l.memory.put(slot, uint64(l.tlsOffset)+value)
	case uint32(elf.R_X86_64_DTPMOD64), uint32(elf.R_AARCH64_TLS_DTPMOD64):
		l.memory.put(slot, module)
		if _, done := l.memory[slot+8]; !done {
			l.memory.put(slot+8, 0) // the linker's, for local symbols
		}
	case uint32(elf.R_X86_64_DTPOFF64), uint32(elf.R_AARCH64_TLS_DTPREL64):
		l.memory.put(slot, value)
	case uint32(elf.R_X86_64_TLSDESC), uint32(elf.R_AARCH64_TLSDESC):
		if l.static {
			l.memory.put(slot, entry, uint64(l.tlsOffset)+value)
		} else {
			l.memory.put(slot, entry, index)
			l.memory.put(index, module, value, generation)
		}
	}
}

// threads lays out one thread's control block, DTV and the resolver's code.
func (l *loader) threads() {
	arm := l.file.Machine == elf.EM_AARCH64
	block := uint64(blockStart)
	if l.static {
		block = pointer + uint64(l.tlsOffset)
	}
	if l.libc == tlsresolve.Glibc {
		l.memory.put(vector-16, 64, 0, generation, 0)
		l.memory.put(vector+16*module, block, 0)
	} else {
		l.memory.put(vector, 64)
		l.memory.put(vector+8*module, block)
	}
	switch {
	case !arm:
		l.memory.put(pointer+8, vector)
	case l.libc == tlsresolve.Glibc:
		l.memory.put(pointer, vector)
	default:
		l.memory.put(pointer-8, vector)
	}
	code := map[bool]map[bool]string{
		true:  {true: armBTI + armStatic, false: armDynamic},
		false: {true: x86Static, false: x86Glibc},
	}[arm][l.static]
	if !arm && !l.static && l.libc == tlsresolve.Musl {
		code = x86Musl
	}
	l.memory.code(entry, code)
}

// The whole matrix for both machines, relocated by the loader above: what the
// machine at hand cannot run.
func TestSimulatedLoader(t *testing.T) {
	type variant struct {
		name   string
		flags  []string
		model  tlsresolve.Model
		static bool // in static TLS
	}
	variants := []variant{
		{"TLSDESC static", []string{"desc"}, tlsresolve.Descriptor, true},
		{"TLSDESC dynamic", []string{"desc"}, tlsresolve.Descriptor, false},
		{"TLSDESC static hidden", []string{"desc", "-DVISIBILITY=hidden"}, tlsresolve.Descriptor, true},
		{"TLSDESC dynamic hidden", []string{"desc", "-DVISIBILITY=hidden"}, tlsresolve.Descriptor, false},
		{"TLSDESC dynamic protected", []string{"desc", "-DVISIBILITY=protected"}, tlsresolve.Descriptor, false},
		{"TLSDESC dynamic sibling", []string{"desc", "-DSIBLING"}, tlsresolve.Descriptor, false},
		{"general-dynamic", []string{"trad"}, tlsresolve.GeneralDynamic, false},
		{"general-dynamic startup", []string{"trad"}, tlsresolve.GeneralDynamic, true},
		{"general-dynamic hidden", []string{"trad", "-DVISIBILITY=hidden"}, tlsresolve.GeneralDynamic, false},
		{"general-dynamic symbolic", []string{"trad", "-Wl,-Bsymbolic"}, tlsresolve.GeneralDynamic, false},
		{"general-dynamic sibling", []string{"trad", "-DSIBLING"}, tlsresolve.GeneralDynamic, false},
		{"initial-exec", []string{"-ftls-model=initial-exec"}, tlsresolve.InitialExec, true},
		{"initial-exec hidden", []string{"-ftls-model=initial-exec", "-DVISIBILITY=hidden"}, tlsresolve.InitialExec, true},
	}
	dialects := map[string]map[string]string{
		corpus.GCC:        {"desc": "-mtls-dialect=gnu2", "trad": "-mtls-dialect=gnu"},
		corpus.AArch64GCC: {"desc": "-mtls-dialect=desc", "trad": "-mtls-dialect=trad"},
	}
	for compiler, names := range dialects {
		for _, v := range variants {
			t.Run(compiler+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				flags := []string{"-DPAD=40"}
				for _, flag := range v.flags {
					if dialect, ok := names[flag]; ok {
						flag = dialect
					}
					flags = append(flags, flag)
				}
				path := corpus.Library(t, compiler, flags...)
				f := open(t, path)
				plan, err := tlsresolve.NewPlan(f, symbol)
				require.NoError(t, err)
				require.Equal(t, v.model, plan.Model())
				sym, ok, err := f.TLSSymbol(symbol)
				require.NoError(t, err)
				require.True(t, ok)
				require.NotZero(t, sym.Value)

				for _, libc := range []tlsresolve.Libc{tlsresolve.Glibc, tlsresolve.Musl} {
					l := load(t, path, libc, v.static)
					location, err := plan.Resolve(l.memory, loadBias, tlsresolve.Target{Machine: f.Machine, Libc: libc})
					require.NoError(t, err, libc)
					want := blockStart + sym.Value
					if v.static {
						want = pointer + uint64(l.tlsOffset) + sym.Value
					}
					got, err := location.Address(l.memory, f.Machine, pointer)
					require.NoError(t, err, libc)
					require.Equal(t, want, got, "%v %+v", libc, location)
				}
			})
		}
	}
}

// Before the loader has come, memory holds what the file holds.
func TestNotRelocated(t *testing.T) {
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
		for _, flag := range []string{"-DPAD=8", "-DVISIBILITY=hidden", "-ftls-model=initial-exec", "-mtls-dialect"} {
			t.Run(compiler+flag, func(t *testing.T) {
				t.Parallel()
				if flag == "-mtls-dialect" { // the one that is not the default
					flag = map[string]string{corpus.GCC: flag + "=gnu2", corpus.AArch64GCC: flag + "=trad"}[compiler]
				}
				f := open(t, corpus.Library(t, compiler, flag))
				plan, err := tlsresolve.NewPlan(f, symbol)
				require.NoError(t, err)
				mem := memory{}
				for s := range f.Loads() {
					for a := s.Vaddr &^ 7; a+8 <= s.Vaddr+s.Memsz; a += 8 {
						if w, err := f.ReadWord(a); err == nil {
							mem.put(loadBias+a, w)
						}
					}
				}
				target := tlsresolve.Target{Machine: f.Machine, Libc: tlsresolve.Glibc}
				_, err = plan.Resolve(mem, loadBias, target)
				require.ErrorIs(t, err, tlsresolve.ErrNotRelocated)
				_, err = plan.Resolve(mem, 2*loadBias, target)
				require.ErrorIs(t, err, fakemem.ErrUnmapped)
			})
		}
	}
}
