// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOTLPFileHasOneWriter: what is in it stays until it begins, and a second writer is kept away.
func TestOTLPFileHasOneWriter(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte("before"), 0o644))
	first, err := CreateOTLP(name)
	require.NoError(t, err)
	_, err = CreateOTLP(name)
	require.ErrorIs(t, err, errLocked)
	require.ErrorContains(t, err, name)
	kept, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "before", string(kept))

	require.NoError(t, first.Begin())
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Zero(t, info.Size())
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.NoError(t, first.Close())
	again, err := CreateOTLP(name)
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

// TestOTLPFileThatIsNone: a pipe or a device stays as it is.
func TestOTLPFileThatIsNone(t *testing.T) {
	before, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	first, err := CreateOTLP(os.DevNull)
	require.NoError(t, err)
	defer first.Close()
	second, err := CreateOTLP(os.DevNull)
	require.NoError(t, err)
	defer second.Close()
	require.NoError(t, first.Begin())
	after, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.Equal(t, before.Mode(), after.Mode())
}
