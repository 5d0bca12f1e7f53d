package unwind_test

import (
	"bytes"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// muslProgram builds a static program with musl, of which nothing is described but its own
// functions.
func muslProgram(t *testing.T, args ...string) string {
	t.Helper()
	const source = `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
static int less(const void *a, const void *b) { return memcmp(a, b, 4); }
static void *thread(void *p) { qsort(p, 3, 4, less); return p; }
int main(int n, char **v) { int a[3] = {n, 2, 1}; pthread_t t; (void)v;
pthread_create(&t, NULL, thread, a); pthread_join(t, NULL); return printf("%d %f\n", a[0], n / 3.0); }`
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path+".c", []byte(source), 0o600))
	args = append([]string{"-O2", "-static", "-o", path, path + ".c"}, args...)
	out, err := exec.Command(corpus.MuslGCC, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// A stack ends where the dynamic loader has begun, also while it loads the program.
func TestEntryOfLoader(t *testing.T) {
	program, err := elf.Open("/bin/sh")
	require.NoError(t, err)
	defer program.Close()
	interp := slices.IndexFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	require.NotEqual(t, -1, interp)
	name, err := io.ReadAll(program.Progs[interp].Open())
	require.NoError(t, err)
	loader := string(bytes.TrimRight(name, "\x00"))
	e, err := elf.Open(loader)
	require.NoError(t, err)
	defer e.Close()
	const first = 8 // bytes, with the call of what loads it
	made := table(t, loader)
	for at := e.Entry; at < e.Entry+first; at++ {
		r, ok := made.Lookup(at)
		require.True(t, ok)
		require.Equal(t, record.CFAEnd, r.CFA, "entry + %d", at-e.Entry)
	}
}

// All code of musl has rows but the padding within functions, in a program with symbols and
// without; where programs and threads begin, they end the stack.
func TestCodeOfMusl(t *testing.T) {
	path := muslProgram(t)
	made := table(t, path)
	require.Greater(t, made.Stats.CodeBytes, 20<<10)
	require.Positive(t, made.Stats.FromCode)
	e, err := elf.Open(path)
	require.NoError(t, err)
	defer e.Close()
	symbols, err := e.Symbols()
	require.NoError(t, err)
	bytesOf, described := 0, 0
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF {
			continue
		}
		for at := s.Value; at < s.Value+s.Size; at++ {
			bytesOf++
			if r, ok := made.Lookup(at); ok && r.CFA != record.CFANone {
				described++
			}
		}
	}
	t.Logf("%d of %d bytes of functions", described, bytesOf)
	require.Greater(t, float64(described), 0.95*float64(bytesOf))
	if e.Machine == elf.EM_X86_64 {
		text := e.Section(".text")
		code, err := text.Data()
		require.NoError(t, err)
		const call = "\x31\xed\x5f\x41\xff\xd1" // __clone: xor %ebp, %ebp; pop %rdi; call *%r9
		clone := bytes.Index(code, []byte(call))
		require.Positive(t, clone)
		for _, at := range []uint64{e.Entry + 3, text.Addr + uint64(clone+len(call)-1)} {
			r, ok := made.Lookup(at)
			require.True(t, ok)
			require.Equal(t, record.UnwindRule{CFA: record.CFAEnd}, r, "%#x", at)
		}
	}

	stripped := table(t, muslProgram(t, "-s"))
	same, other := 0, 0
	made.Each(func(vaddr uint64, r record.UnwindRule) bool {
		if got, ok := stripped.Lookup(vaddr); ok && got == r {
			same++
		} else {
			other++
		}
		return true
	})
	t.Logf("without symbols, %d rows are the same, %d are not", same, other)
	require.Greater(t, same, 20*other)
}

// A file that is described loses no time and gets nothing new; where too much is not, only what the
// program begins in is followed.
func TestCodeThatIsDescribed(t *testing.T) {
	path := muslProgram(t)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	followed := table(t, path)
	made, err := compile(b, unwind.Limits{CodeBytes: followed.Stats.CodeBytes - 1})
	require.NoError(t, err)
	consistent(t, made)
	begin, err := elf.NewFile(bytes.NewReader(b))
	require.NoError(t, err)
	end, ok := made.Lookup(begin.Entry)
	require.True(t, ok)
	require.Equal(t, record.UnwindRule{CFA: record.CFAEnd}, end)
	require.Less(t, made.Stats.CodeBytes, 64, "nothing but that")
	require.Less(t, len(made.Rows), len(followed.Rows)/4)

	made.Each(func(vaddr uint64, r record.UnwindRule) bool {
		if got, _ := followed.Lookup(vaddr); r.CFA != record.CFANone {
			require.Equal(t, r, got, "%#x", vaddr)
		}
		return true
	})

	for name, limits := range map[string]unwind.Limits{"rows": {Rows: len(made.Rows) + 20}, "functions": {Functions: made.Stats.FDEs + 20}} {
		few, err := compile(b, limits)
		require.NoError(t, err, name)
		require.Len(t, few.Rows, len(made.Rows))
		made.Each(func(vaddr uint64, r record.UnwindRule) bool {
			got, _ := few.Lookup(vaddr)
			return assert.Equal(t, r, got, "%s: %#x", name, vaddr)
		})
	}
}
