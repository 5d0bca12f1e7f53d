//go:build linux

package executable

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// libcPath is the C library that programs of this machine map.
func libcPath(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("gcc", "-print-file-name=libc.so.6").Output()
	require.NoError(t, err)
	path, err := filepath.EvalSymlinks(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	return path
}

// manySymbols writes an assembly file of many functions, and of zeroBytes of data.
func manySymbols(t *testing.T, symbols, zeroBytes int) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, ".data\n.zero %d\n.text\n", zeroBytes)
	for i := range symbols {
		fmt.Fprintf(&b, ".globl a_function_with_a_name_of_its_own_%d\n.hidden a_function_with_a_name_of_its_own_%[1]d\n"+
			".type a_function_with_a_name_of_its_own_%[1]d,@function\na_function_with_a_name_of_its_own_%[1]d: ret\n", i)
	}
	b.WriteString(".section .note.GNU-stack,\"\",%progbits\n")
	path := filepath.Join(t.TempDir(), "many.s")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	return path
}

// largestInstalled returns the largest ELF file of this machine's program
// directories, "" if there is none.
func largestInstalled(t *testing.T) (largest string) {
	t.Helper()
	size := int64(0)
	for _, pattern := range []string{"/usr/bin/*", "/usr/local/bin/*", "/usr/lib/*-linux-gnu/*.so*", "/usr/lib/jvm/*/lib/server/*.so"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() || info.Size() <= size {
				continue
			}
			if f, err := elf.Open(path); err == nil {
				f.Close()
				largest, size = path, info.Size()
			}
		}
	}
	return largest
}

// symtabBytes is the size of the .symtab that must be read to know whether a
// file has variables that it does not export: 0 for one that is stripped, and for
// one without thread-local variables.
func symtabBytes(t *testing.T, path string) int64 {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	tls := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_TLS })
	table := f.Section(".symtab")
	if !tls || table == nil {
		return 0
	}
	return int64(table.Size)
}
