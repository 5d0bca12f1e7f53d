package procfs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file is read up to the limit, however long it is, and it is told whether there is more.
func TestReadLimit(t *testing.T) {
	f := FS{Root: t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(f.Root, "1"), 0o700))
	for _, name := range []string{"stat", "environ"} {
		for _, size := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, 4*firstRead + 1, 100_000} {
			text := bytes.Repeat([]byte("label\x00"), size/6+1)[:size]
			require.NoError(t, os.WriteFile(filepath.Join(f.Root, "1", name), text, 0o600))
			for _, limit := range []int{1, size - 1, size, size + 1, firstRead, 1 << 20} {
				if limit < 1 {
					continue
				}
				data, more, err := f.read(1, name, limit, make([]byte, firstRead))
				require.NoError(t, err)
				require.Equal(t, len(text) > limit, more, "%d bytes, at most %d", size, limit)
				require.True(t, bytes.Equal(text[:min(limit, size)], data), "%d bytes, at most %d", size, limit)
			}
		}
	}
	_, _, err := f.read(2, "stat", 100, nil)
	require.ErrorIs(t, err, ErrNoProcess)
}
