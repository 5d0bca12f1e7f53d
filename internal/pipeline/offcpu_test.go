//go:build linux && (amd64 || arm64)

package pipeline

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// What was not looked at is made up for, whatever the numbers.
func TestWeighted(t *testing.T) {
	require.EqualValues(t, 1000, weighted(1000, 1))
	require.EqualValues(t, 4000, weighted(1000, 1/0.25))
	require.EqualValues(t, 333, weighted(100, 3.333))
	require.Positive(t, weighted(math.MaxUint64, 1e6))
}

// Kernel stacks of switches begin where threads leave the CPU.
func TestKernelTrim(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "kallsyms"), []byte(
		"ffffffff81000000 T _stext\nffffffff81000100 T bpf_trace_run4\nffffffff81000200 t __schedule\nffffffff81000300 T schedule\nffffffff81000400 T _etext\n"), 0o600))
	stack := []uint64{0xffffffff81000110, 0xffffffff81000120, 0xffffffff81000210, 0xffffffff81000310}
	k := &kernelTrim{fs: procfs.FS{Root: root}}
	require.Equal(t, stack[2:], k.trim(stack))
	require.Empty(t, k.trim(nil))
	require.NoError(t, os.Remove(filepath.Join(root, "kallsyms")))
	traced := slices.Insert(slices.Clone(stack), 1, 0xffffffff81000128) // what calls all programs when there are several
	require.Equal(t, stack[2:], k.trim(traced), "others trace switches as well")
	require.Equal(t, stack[2:], k.trim(stack[1:]))
	require.Equal(t, stack[:2], k.trim(stack[:2]), "a shorter stack is not one that it was learned from")

	// Without the kernel's symbols nothing is known to be ours.
	k = &kernelTrim{fs: procfs.FS{Root: t.TempDir()}}
	require.Equal(t, stack, k.trim(stack))
}
