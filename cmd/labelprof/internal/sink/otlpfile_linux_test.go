// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
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

// limitFiles makes files end at a size: a write beyond writes what has room, and fails.
func limitFiles(t *testing.T, size int) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(size), Max: before.Max}))
	t.Cleanup(func() {
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
		signal.Reset(syscall.SIGXFSZ)
	})
}

// TestOTLPFileIsWhole: a file whose disk is full ends with the last request that is whole.
func TestOTLPFileIsWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	file, err := CreateOTLP(name)
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, file.Begin())
	var want bytes.Buffer
	for range 2 {
		_, err := otlp.AppendFrame(&want, profiletest.Tenants().Profiles)
		require.NoError(t, err)
	}
	limitFiles(t, want.Len()+100)
	s := New(Config{OTLP: file})
	for range 4 {
		s.Consume(profiletest.Tenants().Profiles)
	}
	err = s.CloseOTLP()
	require.ErrorIs(t, err, syscall.EFBIG)
	require.ErrorContains(t, err, name)
	require.EqualValues(t, 2, s.unwritten)
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, want.Bytes(), got)
}
