package cpython

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// library is a small library that exports what a CPython does; version 0: not that.
func library(t testing.TB, version uint64, block []byte) []byte {
	t.Helper()
	var source strings.Builder
	source.WriteString("char PyCode_Type[8];\nunsigned char _PyRuntime[] = {")
	for _, b := range append(block, 0) {
		fmt.Fprintf(&source, "%d,", b)
	}
	source.WriteString("};\n")
	if version != 0 {
		fmt.Fprintf(&source, "const unsigned long Py_Version = %d;\n", version)
	}
	path := filepath.Join(t.TempDir(), "python.so")
	cmd := exec.Command("gcc", "-shared", "-fPIC", "-nostdlib", "-s", "-o", path, "-x", "c", "-")
	cmd.Stdin = strings.NewReader(source.String())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

func layoutIn(t testing.TB, data []byte) (*Layout, error) {
	t.Helper()
	e, err := elffile.New(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return LayoutOf(e)
}

func TestLayoutOf(t *testing.T) {
	for version, block := range map[uint64][]byte{
		0x030b02f0: nil, 0x030c01f0: nil,
		0x030d00f0: debugBlock(0x030d00f0), 0x030e0af0: debugBlock(0x030e0af0),
		0x030d0ff0: debugBlockFreeThreaded(0x030d0ff0),
	} {
		l, err := layoutIn(t, library(t, version, block))
		require.NoError(t, err)
		require.Equal(t, record.RuntimeCPython, l.Kind())
		require.NotZero(t, l.process.CodeType)
		require.Greater(t, l.process.Interpreters, uint64(40), "in _PyRuntime")
		requireInBounds(t, &l.process)
	}
}

// What is not known is refused, and named.
func TestLayoutOfRefuses(t *testing.T) {
	for want, data := range map[string][]byte{
		"CPython before 3.11":   library(t, 0, nil),
		"CPython 2.7.18":        library(t, 0x020712f0, nil),
		"CPython 3.14.0":        library(t, 0x030e00b2, debugBlock(0x030e00b2)), // beta 2
		"CPython 3.15.1":        library(t, 0x030f01f0, debugBlock(0x030f01f0)),
		errFreeThreaded.Error(): library(t, 0x030e00f0, debugBlockFreeThreaded(0x030e00f0)),
	} {
		_, err := layoutIn(t, data)
		require.ErrorIs(t, err, langruntime.ErrUnsupported, want)
		require.ErrorContains(t, err, want)
	}
	for want, data := range map[string][]byte{
		"no _Py_DebugOffsets":        library(t, 0x030d00f0, bytes.Repeat([]byte("x"), debugOffsetsBytes)),
		"read _Py_DebugOffsets":      library(t, 0x030d00f0, make([]byte, debugOffsetsBytes)), // not in the file
		"of version 0x30d00f0":       library(t, 0x030d01f0, debugBlock(0x030d00f0)),
		"offset 36 in _Py_DebugOffs": library(t, 0x030e00f0, func() []byte { b := debugBlock(0x030e00f0); b[8*36+1] = 1; return b }()),
	} {
		_, err := layoutIn(t, data)
		require.ErrorIs(t, err, langruntime.ErrUnreadable, want)
		require.ErrorContains(t, err, want)
	}
	none, err := os.ReadFile("/bin/true")
	require.NoError(t, err)
	_, err = layoutIn(t, none)
	require.ErrorIs(t, err, langruntime.ErrNone)
}

// FuzzFile gives LayoutOf a hostile file.
func FuzzFile(f *testing.F) {
	f.Add(library(f, 0x030b02f0, nil))
	f.Add(library(f, 0x030d00f0, debugBlock(0x030d00f0)))
	f.Add(library(f, 0x030e0af0, debugBlock(0x030e0af0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := elffile.New(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		l, err := LayoutOf(e)
		if (l == nil) == (err == nil) {
			t.Fatalf("%+v beside %v", l, err)
		}
		if err == nil {
			requireInBounds(t, &l.process)
		}
	})
}
