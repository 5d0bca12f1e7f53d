//go:build linux

package executable

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// The vDSO of another process is an ELF file with a build id and known symbols.
func TestVDSO(t *testing.T) {
	v := loadVDSO(&fileOptions{ctx: t.Context(), fs: procfs.FS{Root: "/proc"}, descriptors: newDescriptors(0)})
	require.NotNil(t, v)
	size := uint64(len(v.image))
	const start = 0x7fff00000000
	require.Same(t, v.file, v.of(&procfs.Mapping{Start: start, Limit: start + size, Path: vdsoPath}))
	require.Nil(t, v.of(&procfs.Mapping{Start: start, Limit: start + size, Path: vdsoPath, Inode: 1}), "a file of that name")
	require.Nil(t, v.of(&procfs.Mapping{Start: start, Limit: start + 2*size, Path: vdsoPath}), "another one")

	require.NotEmpty(t, v.file.BuildIDGNU())
	bias, ok := v.file.facts.Layout.Bias(start, 0)
	require.True(t, ok)
	require.EqualValues(t, start, bias)

	f, n, err := v.file.Open()
	require.NoError(t, err)
	defer f.Close()
	e, err := elffile.New(f, n)
	require.NoError(t, err)
	names := 0
	for _, name := range []string{"__vdso_clock_gettime", "__kernel_clock_gettime"} {
		if _, ok, err := e.DynamicSymbol(name); err == nil && ok {
			names++
		}
	}
	require.Equal(t, 1, names)
}

// A process's vDSO is a mapping with a file.
func TestVDSOMapping(t *testing.T) {
	c := NewCache(Options{FS: procfs.FS{Root: "/proc"}})
	found := 0
	for raw, err := range (procfs.FS{}).Mappings(os.Getpid()) {
		require.NoError(t, err)
		if raw.Path != vdsoPath {
			continue
		}
		m, err := c.Map(os.Getpid(), Owner{}, &raw, nil)
		require.NoError(t, err)
		require.NotNil(t, m.File)
		vaddr, ok := m.Vaddr(m.Start + 1)
		require.True(t, ok)
		require.EqualValues(t, 1, vaddr)
		found++
	}
	require.Equal(t, 1, found)
}
