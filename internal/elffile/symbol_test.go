package elffile_test

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

// systemFiles are large files of the machine that is tested on.
func systemFiles(t testing.TB) []string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	files := []string{self}
	for _, program := range []string{"gcc", "sh"} {
		path, err := exec.LookPath(program)
		require.NoError(t, err)
		files = append(files, path)
	}
	for _, args := range [][]string{
		{corpus.GCC, "-print-file-name=libc.so.6"}, {corpus.GCC, "-print-file-name=libstdc++.so.6"},
		{corpus.AArch64GCC, "-print-file-name=libc.so.6"},
	} {
		out, err := exec.Command(args[0], args[1:]...).Output()
		require.NoError(t, err)
		if path := strings.TrimSpace(string(out)); strings.HasPrefix(path, "/") {
			files = append(files, path)
		}
	}
	return files
}

// Every symbol that debug/elf reads must be found by name, with the same value,
// and nothing else.
func TestDynamicSymbol(t *testing.T) {
	paths := systemFiles(t)
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC, corpus.MuslGCC} {
		for _, hash := range []string{"gnu", "sysv", "both"} {
			paths = append(paths, corpus.Library(t, compiler, "-Wl,--hash-style="+hash))
		}
	}
	paths = append(paths, corpus.Library(t, corpus.GCC, "-fuse-ld=gold"))
	found := 0
	for _, path := range paths {
		oracle, err := elf.Open(path)
		require.NoError(t, err)
		symbols, _ := oracle.DynamicSymbols() // an error: it has none
		defined := map[string][]elf.Symbol{}
		for _, s := range symbols {
			if s.Section != elf.SHN_UNDEF && s.Name != "" {
				defined[s.Name] = append(defined[s.Name], s)
			}
		}
		f := open(t, path, noSections)
		for _, s := range symbols {
			got, ok, err := f.DynamicSymbol(s.Name)
			require.NoError(t, err, "%s %s", path, s.Name)
			require.Equal(t, defined[s.Name] != nil, ok, "%s %s", path, s.Name)
			if !ok {
				continue
			}
			same := false
			for _, d := range defined[s.Name] {
				same = same || symbols[got.Index-1].Name == d.Name && d.Value == got.Value && d.Size == got.Size && elf.ST_TYPE(d.Info) == got.Type &&
					elf.ST_BIND(d.Info) == got.Bind && d.Section == got.Section
			}
			require.True(t, same, "%s %+v", path, got)
			_, ok, err = f.DynamicSymbol(s.Name + "!")
			require.NoError(t, err)
			require.False(t, ok)
			found++
		}
		require.NoError(t, oracle.Close())
	}
	require.Greater(t, found, 5000)
}

func TestDynamicSymbolVersions(t *testing.T) {
	for _, hash := range []string{"gnu", "sysv"} {
		path := corpus.Build(t, "lib.so", corpus.GCC, "versioned.c", "-shared", "-fPIC", "-Wl,--hash-style="+hash,
			"-Wl,--version-script="+corpus.Source(t, "versioned.map"))
		f := open(t, path)
		got, ok, err := f.DynamicSymbol("custom_labels_current_set")
		require.NoError(t, err)
		require.True(t, ok)
		want, ok, err := f.TLSSymbol("variable_v2")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want.Value, got.Value)
	}
}

// Symbols of .symtab as debug/elf reads them.
func TestSymbol(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	checked := 0
	for _, path := range []string{
		self, corpus.Library(t, corpus.AArch64GCC), corpus.Build(t, "host", corpus.GCC, "host.c", "variable.c", "-DLINKED", "-static"),
	} {
		oracle, err := elf.Open(path)
		require.NoError(t, err)
		symbols, err := oracle.Symbols()
		if len(symbols) == 0 {
			continue // go test strips some binaries
		}
		require.NoError(t, err)
		f := open(t, path)
		checked += checkSymbols(t, symbols, f.TLSSymbol, func(s elf.Symbol) bool { return elf.ST_TYPE(s.Info) == elf.STT_TLS })
		checked += checkSymbols(t, symbols, f.IntSymbol, func(s elf.Symbol) bool { return elf.ST_TYPE(s.Info) == elf.STT_OBJECT && s.Size == 4 })
		for _, find := range []func(string) (elffile.Symbol, bool, error){f.TLSSymbol, f.IntSymbol} {
			for _, name := range []string{"", "main", "no such symbol", "custom_labels_current_set\x00"} {
				_, ok, err := find(name)
				require.NoError(t, err)
				require.False(t, ok, name)
			}
		}
	}
	require.Greater(t, checked, 50)
}

// checkSymbols looks up all symbols of a kind and returns how many there are.
func checkSymbols(t *testing.T, symbols []elf.Symbol, find func(string) (elffile.Symbol, bool, error), kind func(elf.Symbol) bool) int {
	values := map[string]map[uint64]bool{}
	globals := map[string]uint64{}
	for _, s := range symbols {
		if s.Name == "" || s.Section == elf.SHN_UNDEF || !kind(s) {
			continue
		}
		if values[s.Name] == nil {
			values[s.Name] = map[uint64]bool{}
		}
		values[s.Name][s.Value] = true
		if elf.ST_BIND(s.Info) != elf.STB_LOCAL {
			globals[s.Name] = s.Value
		}
	}
	for name, all := range values {
		got, ok, err := find(name)
		global, isGlobal := globals[name]
		if errors.Is(err, elffile.ErrAmbiguous) {
			require.False(t, ok || isGlobal || len(all) == 1, name)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, isGlobal || len(all) == 1, ok, name)
		if isGlobal {
			require.Equal(t, global, got.Value, name)
		} else if ok {
			require.True(t, all[got.Value], name)
		}
	}
	return len(values)
}

// Of several local variables of one name nobody knows which one is meant; a global one is.
func TestAmbiguousVariable(t *testing.T) {
	const variable = "__thread void *custom_labels_current_set; void *%s(void) { return &custom_labels_current_set; }"
	for kinds, want := range map[[2]string]error{{"static ", "static "}: elffile.ErrAmbiguous, {"static ", ""}: nil} {
		dir := t.TempDir()
		args := []string{"-shared", "-fPIC", "-o", filepath.Join(dir, "lib.so")}
		for i, kind := range kinds {
			path := filepath.Join(dir, fmt.Sprintf("%d.c", i))
			require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, kind+variable, fmt.Sprint("f", i)), 0o600))
			args = append(args, path)
		}
		b, err := exec.Command("gcc", args...).CombinedOutput()
		require.NoError(t, err, "%s", b)
		_, ok, err := open(t, filepath.Join(dir, "lib.so")).TLSSymbol("custom_labels_current_set")
		require.ErrorIs(t, err, want)
		require.Equal(t, want == nil, ok)
	}
}

func TestSymbolFixture(t *testing.T) {
	f := open(t, corpus.Build(t, "host", corpus.GCC, "host.c", "variable.c", "-DLINKED", "-static"))
	_, ok, err := f.DynamicSymbol("custom_labels_current_set")
	require.NoError(t, err)
	require.False(t, ok)
	version, ok, err := f.IntSymbol("custom_labels_abi_version")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, elf.STT_OBJECT, version.Type)
	require.EqualValues(t, 4, version.Size)
	_, ok, err = f.TLSSymbol("custom_labels_abi_version")
	require.NoError(t, err)
	require.False(t, ok)
	set, ok, err := f.TLSSymbol("custom_labels_current_set")
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 8, set.Size)
	_, ok, err = f.IntSymbol("custom_labels_current_set")
	require.NoError(t, err)
	require.False(t, ok)
	// The end of a name is not a name, unless the linker says so.
	_, ok, err = f.TLSSymbol("labels_current_set")
	require.NoError(t, err)
	require.False(t, ok)
	_, ok, err = open(t, corpus.Library(t, corpus.GCC, "-s")).TLSSymbol("custom_labels_current_set")
	require.NoError(t, err)
	require.False(t, ok)
}

func TestFunctions(t *testing.T) {
	for _, path := range append(systemFiles(t), corpus.Library(t, corpus.GCC, "-Wl,--hash-style=gnu"), corpus.Library(t, corpus.GCC, "-Wl,--hash-style=sysv")) {
		oracle, err := elf.Open(path)
		require.NoError(t, err)
		static, _ := oracle.Symbols()
		dynamic, _ := oracle.DynamicSymbols()
		type function struct {
			name        string
			value, size uint64
		}
		want := map[function]int{}
		for _, s := range append(static, dynamic...) {
			typ := elf.ST_TYPE(s.Info)
			if (typ == elf.STT_FUNC || typ == elf.STT_GNU_IFUNC) && s.Section != elf.SHN_UNDEF && s.Name != "" && len(s.Name) < 1024 {
				want[function{s.Name, s.Value, s.Size}]++
			}
		}
		got := map[function]int{}
		require.NoError(t, open(t, path).Functions(func(fn elffile.Function) bool {
			got[function{string(fn.Name), fn.Value, fn.Size}]++
			return true
		}))
		require.Equal(t, len(want), len(got), path)
		require.Equal(t, want, got, path)

		calls := 0
		require.NoError(t, open(t, path).Functions(func(elffile.Function) bool { calls++; return false }))
		require.LessOrEqual(t, calls, 1)
	}
}

// In .symtab, linkers write the version behind the name.
func TestNamesWithoutVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path+".c", []byte(`__asm__(".symver new, frob@@V2\n.symver old, frob@V1");
int new(void) { return 2; }
int old(void) { return 1; }`), 0o600))
	require.NoError(t, os.WriteFile(path+".map", []byte("V1 { global: frob; local: *; };\nV2 { global: frob; } V1;"), 0o600))
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-O2", "-Wl,--version-script="+path+".map", "-o", path, path+".c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	f := open(t, path)
	names := map[string]int{}
	require.NoError(t, f.StaticFunctions(func(fn elffile.Function) bool {
		names[string(fn.Name)]++
		return true
	}))
	require.Equal(t, 2, names["frob"])
	for name := range names {
		require.NotContains(t, name, "@")
	}
	for name, want := range map[string]string{"@": "@", "a@": "a@", "@V": "@V", "a@V": "a", "a@@V": "a", "a@b@V": "a@b"} {
		require.Equal(t, want, string(elffile.WithoutVersion([]byte(name))))
	}
}
