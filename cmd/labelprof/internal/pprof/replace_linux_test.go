// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
)

// TestWriteToPipe: a pipe stays one, and has the profile, also by the name of a link.
func TestWriteToPipe(t *testing.T) {
	p := New(MaxBytes)
	gather(p, profiletest.Tenants().Profiles)
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(pipe, link))
	for _, name := range []string{pipe, link} {
		// For writing as well, so that it opens, and reads, whatever the builder does.
		reader, err := os.OpenFile(pipe, os.O_RDWR|unix.O_NONBLOCK, 0)
		require.NoError(t, err)
		require.NoError(t, p.WriteFile(name))
		info, err := os.Lstat(pipe)
		require.NoError(t, err)
		require.Equal(t, fs.ModeNamedPipe, info.Mode().Type(), "%s is still a pipe", name)
		data := make([]byte, 1<<16)
		n, err := reader.Read(data)
		require.NoError(t, err)
		parsed, err := profile.ParseData(data[:n])
		require.NoError(t, err)
		require.Len(t, parsed.Sample, len(p.samples))
		require.NoError(t, reader.Close())
	}
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, fs.ModeSymlink, info.Mode().Type())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "nothing is left over")
}

// TestWriteToOpenFile: /dev/stdout and the like are what is open, also where that is a file, of
// which nothing is lost.
func TestWriteToOpenFile(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer file.Close()
	_, err = file.WriteString("before")
	require.NoError(t, err)
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		require.NoError(t, writeFile(fmt.Sprintf("%s/%d", dir, file.Fd()), func(w io.Writer) error {
			_, err := io.WriteString(w, " "+dir)
			return err
		}))
	}
	data, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	require.Equal(t, "before /proc/self/fd /dev/fd", string(data))
	require.True(t, isSpecial("/dev/null"))
	require.True(t, isSpecial("/dev/stdout"))
	require.False(t, isSpecial(file.Name()))
	require.False(t, isSpecial(file.Name()+" that is missing"))
	require.False(t, isSpecial("/dev/shm/that is missing"))
}

// TestCheckFile: what cannot be written is told before there is anything to write, and what can be
// stays as it is.
func TestCheckFile(t *testing.T) {
	dir := t.TempDir()
	there, pipe := filepath.Join(dir, "there"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(there, []byte("before"), 0o600))
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	for _, name := range []string{there, filepath.Join(dir, "new"), pipe, os.DevNull, "/dev/stdout"} {
		require.NoError(t, CheckFile(name), name)
	}
	require.ErrorIs(t, CheckFile(dir), unix.EISDIR)
	err := CheckFile(filepath.Join(dir, "missing", "out"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "write "+dir)
	data, err := os.ReadFile(there)
	require.NoError(t, err)
	require.Equal(t, "before", string(data))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "nothing is left over")
}

// TestWriteFails: errors of what is written to are not lost, nor is what cannot be written to.
func TestWriteFails(t *testing.T) {
	p := New(MaxBytes)
	gather(p, profiletest.Tenants().Profiles)
	require.ErrorIs(t, p.WriteFile("/dev/full"), unix.ENOSPC)
	dir := t.TempDir()
	require.ErrorIs(t, p.WriteFile(dir), unix.EISDIR)
	require.DirExists(t, dir)
	failed := errors.New("failed")
	require.Equal(t, failed, writeFile("/dev/null", func(io.Writer) error { return failed }))
}
