package tlsresolve_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// open opens a file from a copy in memory, so that it can be changed first.
func open(tb testing.TB, path string, change ...func([]byte)) *elffile.File {
	tb.Helper()
	b, err := os.ReadFile(path)
	require.NoError(tb, err)
	for _, c := range change {
		c(b)
	}
	f, err := elffile.New(bytes.NewReader(b), int64(len(b)))
	require.NoError(tb, err)
	return f
}

// noSections makes the section headers disappear.
func noSections(b []byte) {
	clear(b[40:48]) // e_shoff
	clear(b[58:64]) // e_shentsize, e_shnum, e_shstrndx
}

func TestPlanErrors(t *testing.T) {
	const lib = "-shared"
	tests := []struct {
		name   string
		symbol string
		args   []string
		err    error
	}{
		{"undefined in library", symbol, []string{"user.c", lib, "-fPIC"}, tlsresolve.ErrNoSymbol},
		{"not thread-local", "custom_labels_abi_version", []string{"variable.c", lib, "-fPIC"}, tlsresolve.ErrNoSymbol},
		{"not there", "otel_thread_ctx_v1", []string{"variable.c", lib, "-fPIC"}, tlsresolve.ErrNoSymbol},
		{"no TLS", symbol, []string{"host.c", "-shared", "-fPIC"}, tlsresolve.ErrNoSymbol},
		{"part of the name", symbol[1:], []string{"variable.c", lib, "-fPIC"}, tlsresolve.ErrNoSymbol},
		{"empty name", "", []string{"variable.c", lib, "-fPIC"}, tlsresolve.ErrNoSymbol},
	}
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
		for _, test := range tests {
			t.Run(compiler+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				f := open(t, corpus.Build(t, "file", compiler, test.args...))
				_, err := tlsresolve.NewPlan(f, test.symbol)
				require.ErrorIs(t, err, test.err)
			})
		}
	}
}

// A symbol that says to lie behind the end of the TLS segment.
func TestPlanSymbolOutside(t *testing.T) {
	path := corpus.Library(t, corpus.GCC, "-DPAD=40")
	_, err := tlsresolve.NewPlan(open(t, path, tlsSize(48+8)), symbol)
	require.NoError(t, err)
	_, err = tlsresolve.NewPlan(open(t, path, tlsSize(40)), symbol)
	var format *elffile.FormatError
	require.ErrorAs(t, err, &format)
}

// tlsSize sets p_memsz of PT_TLS.
func tlsSize(n uint64) func([]byte) {
	return func(b []byte) {
		for off := 64; ; off += 56 {
			if elf.ProgType(binary.LittleEndian.Uint32(b[off:])) == elf.PT_TLS {
				binary.LittleEndian.PutUint64(b[off+40:], n)
				return
			}
		}
	}
}

// In a library that never uses its variable nothing leads to it; that is known
// when the file has been read, and what to do in the process.
func TestPlanUnreferenced(t *testing.T) {
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
		f := open(t, corpus.Library(t, compiler, "-DUNREFERENCED"))
		plan, err := tlsresolve.NewPlan(f, symbol)
		require.NoError(t, err)
		require.Equal(t, tlsresolve.ModuleOnly, plan.Model())
		for _, libc := range []tlsresolve.Libc{tlsresolve.UnknownLibc, tlsresolve.Glibc, tlsresolve.Musl} {
			_, err = plan.Resolve(memory{}, loadBias, tlsresolve.Target{Machine: f.Machine, Libc: libc})
			require.ErrorIs(t, err, tlsresolve.ErrNoRelocation)
		}
	}
}

// A relocation against another variable of the library, which another object
// may have taken the place of, does not tell where ours is.
func TestPlanInterposableNeighbour(t *testing.T) {
	for _, dialect := range []string{"gnu", "gnu2"} {
		f := open(t, corpus.Library(t, corpus.GCC, "-DPAD=40", "-DNEIGHBOUR", "-mtls-dialect="+dialect))
		plan, err := tlsresolve.NewPlan(f, symbol)
		require.NoError(t, err)
		require.Equal(t, tlsresolve.ModuleOnly, plan.Model())
		_, err = tlsresolve.NewPlan(f, "variable_padding")
		require.NoError(t, err)
	}
}

// An executable that uses a library's variable has an undefined symbol and a
// relocation for it, which must not make it a definer.
func TestPlanUndefinedInExecutable(t *testing.T) {
	library := corpus.Library(t, corpus.GCC)
	program := corpus.Build(t, "host", corpus.GCC, "host.c", "user.c", "-DLINKED", library, "-rdynamic")
	_, err := tlsresolve.NewPlan(open(t, program), symbol)
	require.ErrorIs(t, err, tlsresolve.ErrNoSymbol)
}

// The plan depends neither on section headers nor on the kind of hash table.
func TestPlanWithoutSections(t *testing.T) {
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
		for _, hash := range []string{"gnu", "sysv", "both"} {
			for _, model := range []string{"-ftls-model=global-dynamic", "-ftls-model=initial-exec"} {
				path := corpus.Library(t, compiler, "-Wl,--hash-style="+hash, model, "-DPAD=24")
				want, err := tlsresolve.NewPlan(open(t, path), symbol)
				require.NoError(t, err)
				got, err := tlsresolve.NewPlan(open(t, path, noSections), symbol)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
		}
	}
}

// Without its .symtab an executable keeps the symbol only when it was exported.
func TestPlanStripped(t *testing.T) {
	for _, export := range []string{"-rdynamic", "-no-pie"} {
		program := corpus.Build(t, "host", corpus.GCC, "host.c", "variable.c", "-DLINKED", export)
		_, err := tlsresolve.NewPlan(open(t, program), symbol)
		require.NoError(t, err)
		require.NoError(t, exec.Command("strip", program).Run())
		_, err = tlsresolve.NewPlan(open(t, program), symbol)
		if export == "-rdynamic" {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, tlsresolve.ErrNoSymbol)
		}
	}
}

func TestModelString(t *testing.T) {
	require.Equal(t, "local-exec", tlsresolve.LocalExec.String())
	require.Equal(t, "initial-exec", tlsresolve.InitialExec.String())
	require.Equal(t, "TLSDESC", tlsresolve.Descriptor.String())
	require.Equal(t, "general-dynamic", tlsresolve.GeneralDynamic.String())
	require.Equal(t, "link map", tlsresolve.ModuleOnly.String())
	require.Equal(t, "unknown", tlsresolve.Model(9).String())
}
