//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

type cpioEntry struct {
	mode         uint64
	data         string
	major, minor uint64
}

// readCPIO reads an archive as the kernel would.
func readCPIO(t *testing.T, archive []byte) (names []string, entries map[string]cpioEntry) {
	t.Helper()
	entries = map[string]cpioEntry{}
	inodes := map[uint64]bool{}
	const headerBytes, fieldBytes = 110, 8
	align := func(at int) int { return (at + 3) &^ 3 }
	for at := 0; ; {
		header := archive[at : at+headerBytes]
		require.Equal(t, "070701", string(header[:6]))
		field := func(i int) uint64 {
			v, err := strconv.ParseUint(string(header[6+i*fieldBytes:][:fieldBytes]), 16, 32)
			require.NoError(t, err)
			return v
		}
		nameAt := at + headerBytes
		nameEnd := nameAt + int(field(11))
		require.Zero(t, archive[nameEnd-1])
		name := string(archive[nameAt : nameEnd-1])
		dataAt := align(nameEnd)
		dataEnd := dataAt + int(field(6))
		if name == "TRAILER!!!" {
			require.Len(t, archive, align(dataEnd))
			return names, entries
		}
		require.False(t, inodes[field(0)], "equal inodes are hard links")
		inodes[field(0)] = true
		names = append(names, name)
		entries[name] = cpioEntry{field(1), string(archive[dataAt:dataEnd]), field(9), field(10)}
		at = align(dataEnd)
	}
}

func TestInitramfs(t *testing.T) {
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "sub", "file"), []byte("12345"), 0o640))
	require.NoError(t, os.Symlink("sub/file", filepath.Join(tree, "link")))
	require.NoError(t, os.Symlink(tree, filepath.Join(dir, "other-name")))

	var b bytes.Buffer
	require.NoError(t, writeInitramfs(&b, []byte("{}"), []addition{
		{filepath.Join(tree, "sub", "file"), "/init"},
		{filepath.Join(dir, "other-name"), "/a/b"},
		{filepath.Join(tree, "sub"), "/a/b/sub"}, // the first wins
	}))
	names, entries := readCPIO(t, b.Bytes())
	require.Equal(t, cpioEntry{mode: 0o100640, data: "12345"}, entries["init"])
	require.Equal(t, cpioEntry{mode: 0o100640, data: "12345"}, entries["a/b/sub/file"])
	require.Equal(t, cpioEntry{mode: 0o120777, data: "sub/file"}, entries["a/b/link"])
	require.Equal(t, cpioEntry{mode: 0o20600, major: 5, minor: 1}, entries["dev/console"])
	require.Equal(t, cpioEntry{mode: 0o100644, data: "{}"}, entries["vmrun.json"])
	require.Equal(t, uint64(0o40755), entries["a"].mode)
	require.Len(t, entries, len(names), "no name twice")
	for i, name := range names {
		if parent := filepath.Dir(name); parent != "." {
			require.Contains(t, names[:i], parent, "the kernel makes no parents")
		}
	}

	require.ErrorIs(t, writeInitramfs(&b, nil, []addition{{filepath.Join(dir, "none"), "/x"}}), os.ErrNotExist)
	require.ErrorContains(t, writeInitramfs(&b, nil, []addition{{"/dev/null", "/x"}}), "neither file")
	require.ErrorIs(t, writeInitramfs(brokenWriter{}, nil, nil), errBroken)
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }
