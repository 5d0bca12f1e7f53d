//go:build linux && (amd64 || arm64)

package bench

import (
	"bytes"
	"debug/elf"
	"debug/gosym"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/test/bench/emitted"
)

// entryBytes is more than the code at the entry of a program, or of the dynamic loader,
// which calls the C library and does not return.
const entryBytes = 64

// goRoots have no caller: goroutines and threads begin there, and mcall has left its
// caller's stack.
var goRoots = []string{"runtime.goexit", "runtime.mstart", "runtime.rt0_go", "runtime.mcall"}

// A codeRange is [from, to) of a file.
type codeRange struct{ from, to uint64 }

// roots are the places where stacks end, by the last part of the file's name: one of the
// receivers does not tell more of it.
type roots map[string][]codeRange

// whole reports whether a stack ends at a root.
func (r roots) whole(s emitted.Stack) bool {
	if len(s) == 0 {
		return false
	}
	last := s[len(s)-1]
	at := last.FileOffset()
	return !last.Kernel && slices.ContainsFunc(r[filepath.Base(last.File)], func(c codeRange) bool { return at >= c.from && at < c.to })
}

// addEntry adds the entry of an executable or a dynamic loader.
func (r roots) addEntry(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	r.add(t, path, f, f.Entry, f.Entry+entryBytes)
}

// addGo adds what has no caller in a Go program.
func (r roots) addGo(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	pclntab, err := f.Section(".gopclntab").Data()
	require.NoError(t, err)
	table, err := gosym.NewTable(nil, gosym.NewLineTable(pclntab, f.Section(".text").Addr))
	require.NoError(t, err)
	r.add(t, path, f, f.Entry, f.Entry+entryBytes)
	for _, name := range goRoots {
		function := table.LookupFunc(name)
		require.NotNil(t, function, "%s in %s", name, path)
		r.add(t, path, f, function.Entry, function.End)
	}
}

// add adds a range of addresses as the file's program headers give them.
func (r roots) add(t *testing.T, path string, f *elf.File, from, to uint64) {
	t.Helper()
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && from >= p.Vaddr && to <= p.Vaddr+p.Filesz {
			name := filepath.Base(path)
			r[name] = append(r[name], codeRange{from - p.Vaddr + p.Off, to - p.Vaddr + p.Off})
			return
		}
	}
	require.Fail(t, "no program header has the address", "%s: %#x", path, from)
}

// interpreter is the dynamic loader of an executable, under its own name.
func interpreter(t *testing.T, path string) string {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, p.Filesz)
			_, err := p.ReadAt(name, 0)
			require.NoError(t, err)
			resolved, err := filepath.EvalSymlinks(string(bytes.TrimRight(name, "\x00")))
			require.NoError(t, err)
			return resolved
		}
	}
	require.Fail(t, "it has no dynamic loader", path)
	return ""
}

// TestRoots holds this program's own stack against its roots.
func TestRoots(t *testing.T) {
	path, err := os.Executable()
	require.NoError(t, err)
	r := roots{}
	r.addGo(t, path)
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var text *elf.Prog
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && f.Entry >= p.Vaddr && f.Entry < p.Vaddr+p.Filesz {
			text = p
		}
	}
	require.NotNil(t, text)
	pcs := make([]uintptr, 100)
	var stack emitted.Stack
	for _, pc := range pcs[:runtime.Callers(0, pcs)] {
		stack = append(stack, emitted.Frame{File: filepath.Base(path), Address: uint64(pc), Start: text.Vaddr, Offset: text.Off})
	}
	require.True(t, r.whole(stack))
	require.False(t, r.whole(stack[:len(stack)-1]), "without its outermost frame")
	require.False(t, r.whole(nil))
	root := stack[len(stack)-1]
	root.File = "another"
	require.False(t, r.whole(emitted.Stack{root}))
	root.File, root.Kernel = path, true
	require.False(t, r.whole(emitted.Stack{root}))
}
