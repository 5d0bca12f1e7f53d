package unwind_test

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

// linked builds a program that makes a thread and calls functions of libraries.
func linked(t *testing.T, compiler string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	source := path + ".c"
	require.NoError(t, os.WriteFile(source, []byte(`
#include <pthread.h>
#include <string.h>
static void *thread(void *p) { return memset(p, 1, strlen(p)); }
int main(int argc, char **argv)
{
	pthread_t t;
	return argc && pthread_create(&t, 0, thread, argv[0]);
}`), 0o600))
	out, err := exec.Command(compiler, append([]string{"-O1", "-pthread", "-o", path, source}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// Linkage tables that no linker describes: those of static executables, of lld, and of
// aarch64.
func TestLinkageTables(t *testing.T) {
	entry := record.UnwindRule{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8}
	late := func(pushed uint8) record.UnwindRule {
		return record.UnwindRule{CFA: record.CFAPLT, Arg: pushed, CFAOffset: 8, RAOffset: -8}
	}
	head := record.UnwindRule{CFA: record.CFAPLT, Arg: 6, CFAOffset: 16, RAOffset: -8}
	arm := record.UnwindRule{CFA: record.CFASP, RA: record.RARegister}
	armHead := record.UnwindRule{CFA: record.CFASP, CFAOffset: 16, RAOffset: -8}
	for _, c := range []struct {
		name, compiler string
		args           []string
		want           map[uint64]record.UnwindRule // by offset in .plt
	}{
		{"static", corpus.GCC, []string{"-static"}, map[uint64]record.UnwindRule{0: entry, 7: entry, 8: entry}},
		{"ld", corpus.GCC, []string{"-Wl,-z,lazy"}, map[uint64]record.UnwindRule{16: late(11)}},
		{"lld", "clang-19", []string{"-fuse-ld=lld", "-Wl,-z,lazy"}, map[uint64]record.UnwindRule{0: head, 15: head, 16: late(11), 32: late(11)}},
		{"aarch64", corpus.AArch64GCC, nil, map[uint64]record.UnwindRule{0: arm, 4: armHead, 31: armHead, 32: arm, 63: arm}},
		{"aarch64-bti", corpus.AArch64GCC, []string{"-mbranch-protection=standard", "-Wl,-z,force-bti"}, map[uint64]record.UnwindRule{4: arm, 8: armHead, 32: arm, 63: arm}},
		{"aarch64-static", corpus.AArch64GCC, []string{"-static"}, map[uint64]record.UnwindRule{0: arm, 31: arm}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := linked(t, c.compiler, c.args...)
			f, err := elf.Open(path)
			require.NoError(t, err)
			defer f.Close()
			plt := f.Section(".plt")
			require.NotNil(t, plt)
			made := table(t, path)
			for offset, want := range c.want {
				got, ok := made.Lookup(plt.Addr + offset)
				require.True(t, ok)
				require.Equal(t, want, got, "at %#x of .plt", offset)
			}
		})
	}
}

// The system call of clone3 and what follows belong to the caller, up to where the thread
// begins.
func TestEndOfClone(t *testing.T) {
	path := linked(t, corpus.GCC, "-static")
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.Symbols()
	require.NoError(t, err)
	made := table(t, path)
	checked := 0
	for _, s := range symbols {
		if s.Name != "__clone3" && s.Name != "__clone" {
			continue
		}
		text := f.Sections[s.Section]
		code := make([]byte, s.Size)
		_, err := text.ReadAt(code, int64(s.Value-text.Addr))
		require.NoError(t, err)
		const syscall, begin = "\x0f\x05", "\x31\xed" // xor %ebp, %ebp
		at := bytes.Index(code, []byte(syscall))
		thread := bytes.Index(code, []byte(begin))
		require.True(t, at > 0 && thread > at, s.Name)
		for i := at; i < thread; i++ {
			got, ok := made.Lookup(s.Value + uint64(i))
			require.True(t, ok)
			require.Equal(t, record.UnwindRule{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8}, got, "%s+%#x", s.Name, i)
		}
		got, ok := made.Lookup(s.Value + uint64(thread))
		require.True(t, ok)
		require.Equal(t, record.CFAEnd, got.CFA, s.Name)
		checked++
	}
	require.NotZero(t, checked)
}
