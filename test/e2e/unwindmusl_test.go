//go:build linux && (amd64 || arm64)

package e2e

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// codeRange is a part of a file, by its offsets.
type codeRange struct {
	file         string
	start, limit uint64
}

func (c *codeRange) holds(f *frame) bool {
	return f.mapping == c.file && f.address >= c.start && f.address < c.limit
}

// How far musl's code goes on around what it is found by.
const (
	muslStartBytes = 64
	muslCloneBytes = 64
)

// muslRoots adds where stacks begin in musl, whose assembler has no names that profilers take
// for functions': at the entry of the program, and in __clone in the file that has musl, which
// is known by the instructions with which a thread calls its function. On aarch64 the entry
// jumps to what calls main, with nothing to return to.
func (r *stackRules) muslRoots(t *testing.T, program string) {
	t.Helper()
	e, err := elf.Open(program)
	require.NoError(t, err)
	defer e.Close()
	libc := program
	for _, p := range e.Progs {
		switch {
		case p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && e.Entry >= p.Vaddr && e.Entry < p.Vaddr+p.Filesz:
			at := e.Entry - p.Vaddr + p.Off
			r.roots = append(r.roots, codeRange{program, at, at + muslStartBytes})
		case p.Type == elf.PT_INTERP:
			path := make([]byte, p.Filesz)
			_, err := p.ReadAt(path, 0)
			require.NoError(t, err)
			libc, err = filepath.EvalSymlinks(string(bytes.TrimRight(path, "\x00")))
			require.NoError(t, err)
		}
	}
	b, err := os.ReadFile(libc)
	require.NoError(t, err)
	call := "\x31\xed\x5f\x41\xff\xd1" // xor %ebp, %ebp; pop %rdi; call *%r9
	if e.Machine == elf.EM_AARCH64 {
		r.entries = append(slices.Clone(r.entries), "libc_start_main_stage2")
		r.libc = libc
		call = "\xe1\x03\xc1\xa8\x20\x00\x3f\xd6" // ldp x1, x0, [sp], #16; blr x1
	}
	at := bytes.Index(b, []byte(call))
	require.Positive(t, at, "no __clone in %s", libc)
	r.roots = append(r.roots, codeRange{libc, uint64(at) - muslCloneBytes, uint64(at) + muslCloneBytes})
}
