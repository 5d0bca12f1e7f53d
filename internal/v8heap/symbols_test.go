package v8heap_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// Each piece of metadata has to be there: what is refused is named.
func TestMissingMetadata(t *testing.T) {
	for symbol := range node24() {
		if symbol == major || symbol == minor {
			continue
		}
		ints := node24()
		delete(ints, symbol)
		_, err := v8heap.LayoutOf(library(t, ints))
		require.ErrorIs(t, err, v8heap.ErrUnknown)
		require.ErrorContains(t, err, "no "+symbol)
	}
}

// A library that uses V8 has its symbols, too, but not V8. The older kind of table has
// those that are undefined.
func TestUndefinedVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "addon.so")
	cmd := exec.Command("gcc", "-shared", "-fPIC", "-nostdlib", "-Wl,--hash-style=sysv", "-o", path, "-x", "c", "-")
	cmd.Stdin = strings.NewReader("extern int " + major + ";\nint *version = &" + major + ";\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	e, err := elffile.New(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	_, err = v8heap.LayoutOf(e)
	require.ErrorIs(t, err, v8heap.ErrNoV8)
}
