package elffile_test

import (
	"bytes"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// fuzzNames are looked up in every file: two that the seeds define, one that no
// file does.
var fuzzNames = []string{"custom_labels_current_set", "variable_address", "a"}

// FuzzFile asks everything of a hostile file.
func FuzzFile(f *testing.F) {
	var seeds [][]byte
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
		for _, flag := range []string{"-Wl,--hash-style=sysv", "-Wl,--hash-style=gnu", "-Wl,--build-id", "-Wl,--dynamic-linker=/x"} {
			seeds = append(seeds, corpus.SmallLibrary(f, compiler, flag))
		}
		seeds = append(seeds, corpus.SmallLibrary(f, compiler, "-DPAD=8"))
	}
	var m image
	m.reset()
	m.symbols([]imageSymbol{{name: []byte("a")}}, true, false, 1, 1, 1, 6)
	m.tag(24, 0)
	seeds = append(seeds, m.finish())
	var reader bytes.Reader
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		reader.Reset(data)
		e, err := elffile.New(&reader, int64(len(data)))
		if err == nil {
			askAll(t, e, len(data))
		}
	})
}

// askAll asks everything of a file. What it says must fit a file of that size.
func askAll(t testing.TB, e *elffile.File, size int) {
	_ = e.Interp()
	_ = e.IsExecutable()
	_, _ = e.TLS()
	_, _ = e.BuildID()
	_, _ = e.GoBuildID()
	_, _ = e.SectionBuildID()
	for s := range e.Loads() {
		_, _ = e.LoadBias(0x7f0000000000, s.Offset, true)
		_, _ = e.ReadWord(s.Vaddr)
		if off, n, ok := e.FileRange(s.Vaddr); ok && off+n > uint64(size) {
			t.Fatalf("%d bytes at %d", n, off)
		}
		_, _ = e.ReadWord(s.Vaddr + s.Filesz)
	}
	for _, name := range fuzzNames {
		for _, find := range [...]func(string) (elffile.Symbol, bool, error){e.DynamicSymbol, e.TLSSymbol, e.IntSymbol} {
			if s, ok, err := find(name); ok && (err != nil || s.Name != name || !s.Defined()) {
				t.Fatalf("%s: %+v, %v", name, s, err)
			}
		}
	}
	relocations, functions := 0, 0
	_ = e.RelativeRelocations(func(uint64, uint64) bool { relocations++; return true })
	if relocations > size/24 {
		t.Fatalf("%d relative relocations in %d bytes", relocations, size)
	}
	relocations = 0
	_ = e.Relocations(func(elffile.Relocation) bool { relocations++; return true })
	_ = e.Functions(func(fn elffile.Function) bool {
		functions++
		if len(fn.Name) == 0 {
			t.Fatal("function without a name")
		}
		return true
	})
	// They cannot be more than the file has room for: two tables each.
	if relocations > 2*size/24 || functions > 2*size/24 {
		t.Fatalf("%d relocations, %d functions in %d bytes", relocations, functions, size)
	}
}
