package elffile_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

// FuzzFile asks everything of a hostile file.
func FuzzFile(f *testing.F) {
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
		for _, flag := range []string{"-Wl,--hash-style=sysv", "-Wl,--hash-style=gnu", "-Wl,--build-id", "-Wl,--dynamic-linker=/x"} {
			f.Add(corpus.SmallLibrary(f, compiler, flag))
		}
		f.Add(corpus.SmallLibrary(f, compiler, "-DPAD=8"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := elffile.New(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		_ = e.Interp()
		_ = e.IsExecutable()
		_, _ = e.TLS()
		_, _ = e.BuildID()
		_, _ = e.GoBuildID()
		for s := range e.Loads() {
			_, _ = e.LoadBias(0x7f0000000000, s.Offset, true)
			_, _ = e.ReadWord(s.Vaddr)
		}
		for _, name := range []string{"custom_labels_current_set", "variable_address", "a", ""} {
			for _, find := range []func(string) (elffile.Symbol, bool, error){e.DynamicSymbol, e.Symbol, e.TLSSymbol} {
				if s, ok, err := find(name); ok {
					require.NoError(t, err)
					require.Equal(t, name, s.Name)
					require.True(t, s.Defined())
				}
			}
		}
		relocations, functions := 0, 0
		_ = e.Relocations(func(elffile.Relocation) bool { relocations++; return true })
		_ = e.Functions(func(fn elffile.Function) bool {
			functions++
			require.NotEmpty(t, fn.Name)
			return true
		})
		// They cannot be more than the file has room for.
		require.LessOrEqual(t, relocations, 2*len(data)/24)
		require.LessOrEqual(t, functions, 2*len(data)/24)
	})
}
