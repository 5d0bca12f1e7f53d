package codeframes_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

// Functions with frames of every form, by what compilers and options make of them.
func TestCompiled(t *testing.T) {
	sources := []string{"frames.c", "spin.c", "library.c", "signal.c", "thread.c", "truth.c"}
	for i, s := range sources {
		sources[i] = filepath.Join("../../testdata/unwind", s)
	}
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC, "clang-19", "clang-19 --target=aarch64-linux-gnu"} {
		for _, options := range []string{
			"-O0", "-O2 -falign-functions=1", "-Os", "-O2 -fno-omit-frame-pointer", "-O2 -fstack-clash-protection -fstack-protector-strong",
		} {
			t.Run(compiler+" "+options, func(t *testing.T) {
				words := strings.Fields(compiler)
				path := filepath.Join(t.TempDir(), "x.so")
				args := append(words[1:], strings.Fields(options)...)
				args = append(args, "-w", "-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-shared", "-nostdlib", "-I../../testdata/writers", "-o", path)
				if strings.HasPrefix(compiler, "clang") {
					args = append(args, "-fuse-ld=lld")
				}
				if strings.Contains(compiler, "target=aarch64") {
					args = append(args, "-isystem", "/usr/aarch64-linux-gnu/include")
				}
				out, err := exec.Command(words[0], append(args, sources...)...).CombinedOutput()
				require.NoError(t, err, "%s", out)
				a := agree(t, path, codeOf(t, path, true))
				require.Zero(t, a.wrong)
				require.Greater(t, float64(a.same+a.other), 0.9*float64(a.code))
				// A library that calls all through linkage tables says little without symbols:
				// what they lead to may never return.
				a = agree(t, path, codeOf(t, path, false))
				require.Zero(t, a.wrong)
				require.Greater(t, float64(a.same+a.other), 0.35*float64(a.code))
			})
		}
	}
}
