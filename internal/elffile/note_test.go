package elffile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

func TestBuildID(t *testing.T) {
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC, corpus.MuslGCC} {
		f := open(t, corpus.Library(t, compiler, "-Wl,--build-id=0xAB0123"), noSections)
		id, err := f.BuildID()
		require.NoError(t, err)
		require.Equal(t, "ab0123", id)
		f = open(t, corpus.Library(t, compiler, "-Wl,--build-id=none"))
		id, err = f.BuildID()
		require.NoError(t, err)
		require.Empty(t, id)
		f = open(t, corpus.Library(t, compiler, "-Wl,--build-id=0x"+strings.Repeat("7f", 65)))
		_, err = f.BuildID()
		require.ErrorContains(t, err, "length of build id")
	}
}

func TestGoBuildID(t *testing.T) {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	require.NoError(t, os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600))
	build := exec.Command("go", "build", "-ldflags=-buildid=some/id", "-o", program, source)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	f := open(t, program)
	id, err := f.GoBuildID()
	require.NoError(t, err)
	require.Equal(t, "some/id", id)
	id, err = open(t, corpus.Library(t, corpus.GCC)).GoBuildID()
	require.NoError(t, err)
	require.Empty(t, id)
	_, tls := f.TLS()
	require.False(t, tls, "Go programs cost no lookup")
}
