package corpus

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// The compilers that the corpus is built with.
const (
	GCC        = "gcc"
	MuslGCC    = "musl-gcc"
	AArch64GCC = "aarch64-linux-gnu-gcc"
)

// Build compiles sources of testdata/tls into a file of a new temporary
// directory and returns its path. Arguments that end in ".c" name sources,
// all others are passed as they are.
func Build(tb testing.TB, name, compiler string, args ...string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), name)
	// The order of thread-local variables is what the sources say.
	command := []string{"-O1", "-g0", "-fno-toplevel-reorder"}
	for _, a := range args {
		if filepath.Ext(a) == ".c" {
			a = Source(tb, a)
		}
		command = append(command, a)
	}
	testutil.Compile(tb, out, compiler, command...)
	return out
}

// Library builds variable.c as a shared library.
func Library(tb testing.TB, compiler string, args ...string) string {
	tb.Helper()
	return Build(tb, "libvariable.so", compiler, append([]string{"-shared", "-fPIC", "variable.c"}, args...)...)
}

// SmallLibrary is Library without all that a fuzzer should not waste its
// time on. It cannot be loaded.
func SmallLibrary(tb testing.TB, compiler string, args ...string) []byte {
	tb.Helper()
	small := []string{"-nostdlib", "-s", "-Wl,-z,max-page-size=64,-z,noseparate-code,-z,norelro", "-fno-asynchronous-unwind-tables"}
	b, err := os.ReadFile(Library(tb, compiler, append(small, args...)...))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Source returns the path of a file in testdata/tls at the root of the module.
func Source(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "testdata", "tls", name)
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}
