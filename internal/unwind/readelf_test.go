package unwind_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
	"github.com/customlabels/otelcol-customlabels/test/unwindrows"
)

// Files that are on any machine that runs the tests, one for each way in which
// they were made: C, C++, assembler, two machines, two C libraries.
var installed = []string{
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/lib/x86_64-linux-gnu/libm.so.6",
	"/lib*/x86_64-linux-gnu/libstdc++.so.6",
	"/lib64/ld-linux-x86-64.so.2",
	"/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/lib/x86_64-linux-musl/libc.so",
	"/lib/x86_64-linux-gnu/libgcc_s.so.1",
	"/usr/bin/bash",
	"/usr/bin/readelf",
	"/usr/bin/bpftool",
	"/usr/aarch64-linux-gnu/lib/libc.so.6",
	"/usr/aarch64-linux-gnu/lib/libm.so.6",
	"/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1",
	"/usr/aarch64-linux-gnu/lib/libgcc_s.so.1",
}

func TestInstalledFiles(t *testing.T) {
	checked := 0
	for _, pattern := range installed {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			t.Run(filepath.Base(path), func(t *testing.T) { agrees(t, path) })
			checked++
		}
	}
	require.GreaterOrEqual(t, checked, 8)
}

// agrees checks a file at every row.
func agrees(t *testing.T, path string) *unwindrows.Object {
	t.Helper()
	o, err := unwindrows.Check(path)
	require.NoError(t, err)
	for _, d := range o.Differences {
		t.Error(d)
	}
	require.Positive(t, o.Agree)
	t.Logf("%d starts of rows, %.2f bytes a row, %v, %v", o.Starts, float64(o.Bytes)/float64(o.Rows), o.Took, o.Reasons)
	return o
}

// debugFrameLibrary builds a library that has no .eh_frame.
func debugFrameLibrary(t *testing.T, compiler string, args ...string) string {
	without := []string{"-g", "-nostdlib", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"}
	return corpus.Library(t, compiler, append(without, args...)...)
}

// The same in .debug_frame, as it is, compressed, and with 64-bit lengths.
func TestDebugFrame(t *testing.T) {
	for name, args := range map[string][]string{
		"plain":      {},
		"compressed": {"-gz=zlib"},
		"64-bit":     {"-gdwarf64"},
		"version 3":  {"-gdwarf-3"},
		"version 5":  {"-gdwarf-5"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
				o := agrees(t, debugFrameLibrary(t, compiler, args...))
				require.Equal(t, unwind.SourceDebugFrame, o.Source)
			}
		})
	}
}

// readelf of binutils 2.40 as Debian builds it knows no zstd: the rows are those
// of the section that is not compressed.
func TestCompressedByZstd(t *testing.T) {
	path := debugFrameLibrary(t, corpus.GCC)
	out, err := exec.Command("llvm-objcopy-19", "--compress-debug-sections=zstd", path, path+".zstd").CombinedOutput()
	require.NoError(t, err, "%s", out)
	compressed, err := elf.Open(path + ".zstd")
	require.NoError(t, err)
	defer compressed.Close()
	require.NotZero(t, compressed.Section(".debug_frame").Flags&elf.SHF_COMPRESSED)
	want, got := table(t, path), table(t, path+".zstd")
	require.Equal(t, unwind.SourceDebugFrame, got.Stats.Source)
	require.Equal(t, want.Rows, got.Rows)
	require.Equal(t, want.Rules, got.Rules)
}

// Without section headers, .eh_frame is found by its program header.
func TestWithoutSections(t *testing.T) {
	path := corpus.Library(t, corpus.GCC, "-Wl,--eh-frame-hdr")
	whole := table(t, path)
	stripped := path + ".stripped"
	out, err := exec.Command("llvm-strip-19", "--strip-sections", path, "-o", stripped).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, whole.Rows, table(t, stripped).Rows)
	_, err = os.Stat(stripped)
	require.NoError(t, err)
}

// The vDSO of this machine, which is a file in memory only.
func TestVDSO(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	var start, end uint64
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, "[vdso]\n") {
			_, err = fmt.Sscanf(line, "%x-%x", &start, &end)
			require.NoError(t, err)
		}
	}
	require.NotZero(t, end)
	mem, err := os.Open("/proc/self/mem")
	require.NoError(t, err)
	defer mem.Close()
	image := make([]byte, end-start)
	_, err = mem.ReadAt(image, int64(start))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "vdso")
	require.NoError(t, os.WriteFile(path, image, 0o644))
	agrees(t, path)
}

// Of aarch64, what programs are linked with has descriptions at the same offsets of .eh_frame
// as the program's own in .debug_frame.
func TestBothFramesAtTheSameOffsets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path+".c", []byte(`int f(int n) { volatile char a[200]; a[n] = 1; return a[n / 2]; }
int main(int n, char **v) { (void)v; volatile char b[100]; b[n] = 2; return f(n) + b[n]; }`), 0o600))
	out, err := exec.Command(corpus.AArch64GCC, "-O2", "-g", "-fno-inline", "-fomit-frame-pointer",
		"-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-o", path, path+".c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	made, err := compile(b, unwind.Limits{CodeBytes: 1})
	require.NoError(t, err)
	e, err := elf.NewFile(bytes.NewReader(b))
	require.NoError(t, err)
	symbols, err := e.Symbols()
	require.NoError(t, err)
	found := 0
	for _, s := range symbols {
		if s.Name == "f" || s.Name == "main" {
			r, ok := made.Lookup(s.Value + s.Size/2)
			require.True(t, ok)
			require.Equal(t, record.CFASP, r.CFA, s.Name)
			found++
		}
	}
	require.Equal(t, 2, found)
}

// A program that is compiled without .eh_frame gets one from what it is linked with, which
// says nothing of its own functions.
func TestBothFrames(t *testing.T) {
	const source = `int f(int n) { volatile char a[200]; a[n] = 1; return a[n / 2]; }
int main(int n, char **v) { (void)v; volatile char b[100]; b[n] = 2; return f(n) + b[n]; }`
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	require.NoError(t, os.WriteFile(path+".c", []byte(source), 0o600))
	build := func(args ...string) *unwind.Table {
		args = append([]string{"-O2", "-g", "-fno-inline", "-fomit-frame-pointer", "-o", path, path + ".c"}, args...)
		out, err := exec.Command(corpus.GCC, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return table(t, path)
	}
	with := build()
	without := build("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
	require.Equal(t, unwind.SourceEHFrame, without.Stats.Source)
	require.Equal(t, with.Rows, without.Rows, "the same functions, described elsewhere")
	require.Equal(t, with.Stats.FDEs, without.Stats.FDEs)
}
