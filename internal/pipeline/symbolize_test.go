//go:build linux && (amd64 || arm64)

package pipeline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
)

// missing is a file that cannot be opened.
type missing struct{}

func (missing) Open() (symbol.Contents, int64, error) { return nil, 0, os.ErrNotExist }

func (missing) Owner() symbol.Owner { return symbol.Owner{} }

func (missing) Path() string { return "" }

func (missing) OpenPath(symbol.Root, string) (symbol.Contents, int64, error) {
	return nil, 0, os.ErrNotExist
}

// Names are not refused for the memory that the profiles take which they are for, but where all else takes too much.
func TestNamesBesideOutput(t *testing.T) {
	e, _ := testOutput(func(o *Options) { o.Symbols.Skip = false })
	defer e.symbols.close()
	inode := uint64(0)
	lookup := func() (refused int) {
		inode++
		before := e.symbols.stats()
		e.symbols.files.Lookup(nil, procfs.FileID{Inode: inode}, missing{}, 0)
		after := e.symbols.stats()
		require.Equal(t, 1, int(after.Loads+after.Refused-before.Loads-before.Refused))
		return int(after.Refused - before.Refused)
	}
	require.Zero(t, lookup())
	e.memory.Add(budget.OfOutput, int(e.memory.Limit()))
	require.Zero(t, lookup())
	e.memory.Add(budget.OfBatches, int(e.memory.Limit())*7/16) // counts twice
	require.Equal(t, 1, lookup())
	e.memory.Add(budget.OfOutput, -int(e.memory.Limit()))
	require.Equal(t, 1, lookup())
}

// kernelFrame is what a frame of the kernel comes out as.
type kernelFrame struct{ function, file, buildID string }

func kernelFrameOf(t *testing.T, r *resolver, addr uint64) kernelFrame {
	t.Helper()
	f := r.Frame(7, 0, profile.Kernel, addr)
	require.Equal(t, frameKernel, f.Type)
	require.LessOrEqual(t, len(f.Lines), 1)
	out := kernelFrame{file: f.Mapping.Filename, buildID: f.Mapping.BuildIDGNU}
	for _, l := range f.Lines {
		out.function = l.Function
	}
	return out
}

// Only what is known to be the kernel's own code has its build id.
func TestKernelFrames(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "kallsyms"), []byte(
		"ffffffff81000000 T _stext\nffffffff81000100 t something\nffffffff81000400 T _etext\n"+
			"ffffffffc0001000 t in_module\t[no_such_module]\nffffffffc0100000 t bpf_prog_1\t[bpf]\n"), 0o600))
	kernel, err := symbol.NewKernel(procfs.FS{Root: root})
	require.NoError(t, err)
	const own, behind, module, bpf, nowhere = 0xffffffff81000110, 0xffffffff81000410, 0xffffffffc0001010, 0xffffffffc0100010, 0xffffffffc0200010
	unknown := kernelFrame{file: "[kernel]"}
	r := newResolver(&symbolizer{kernel: kernel})
	require.Equal(t, kernelFrame{"something", "[kernel.kallsyms]", symbol.KernelBuildID("/sys", "")}, kernelFrameOf(t, r, own))
	require.Equal(t, kernelFrame{"in_module", "[no_such_module]", ""}, kernelFrameOf(t, r, module))
	require.Equal(t, kernelFrame{"bpf_prog_1", "[bpf]", ""}, kernelFrameOf(t, r, bpf))
	require.Equal(t, unknown, kernelFrameOf(t, r, behind))
	require.Equal(t, unknown, kernelFrameOf(t, r, nowhere))

	// With symbolize: none, and without the privilege to see addresses.
	for _, s := range []*symbolizer{nil, {}} {
		for _, addr := range []uint64{own, module, bpf, nowhere} {
			require.Equal(t, unknown, kernelFrameOf(t, newResolver(s), addr))
		}
	}
}
