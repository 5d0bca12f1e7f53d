//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseResult(t *testing.T) {
	r, err := parseResult([]byte(`{"Release":"6.1.0","PageSize":4096,"Programs":[{"Exit":0},{"Exit":-1,"Signal":9},{"Exit":3}]}`), 3)
	require.NoError(t, err)
	require.Equal(t, "6.1.0", r.Release)
	require.Equal(t, 137, r.Code(), "the first that failed")
	require.Equal(t, 3, r.Programs[2].Code())

	r, err = parseResult([]byte(`{"Err":"exec format error"}`), 1)
	require.NoError(t, err)
	require.Equal(t, "exec format error", r.Err)

	for _, bad := range []string{"", "Kernel panic", `{"Programs":[{"Exit":0}]}`, `{"Programs":[]}`} {
		_, err := parseResult([]byte(bad), 2)
		require.Error(t, err, bad)
	}
}

func TestUntar(t *testing.T) {
	archive := func(name string) *bytes.Buffer {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Size: 3, Mode: 0o600}))
		_, err := w.Write([]byte("abc"))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return &b
	}
	dir := t.TempDir()
	require.NoError(t, untar(archive("sub/file"), dir))
	b, err := os.ReadFile(filepath.Join(dir, "sub", "file"))
	require.NoError(t, err)
	require.Equal(t, "abc", string(b))

	require.Error(t, untar(archive("../file"), dir))
	require.Error(t, untar(archive("/file"), dir))
	require.Error(t, untar(bytes.NewReader(archive("file").Bytes()[:514]), dir), "cut off")
}
