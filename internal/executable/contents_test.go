//go:build linux

package executable

import (
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// image shows one directory in as many containers, and returns their roots.
func image(t *testing.T, containers int, files map[string][]byte) (roots []string) {
	t.Helper()
	testutil.RequireRoot(t)
	base := t.TempDir()
	mount := func(kind, at, options string) {
		require.NoError(t, unix.Mount(kind, at, kind, 0, options))
		t.Cleanup(func() { require.NoError(t, unix.Unmount(at, unix.MNT_DETACH)) })
	}
	mount("tmpfs", base, "")
	directory := func(name string) string {
		path := filepath.Join(base, name)
		require.NoError(t, os.MkdirAll(path, 0o755))
		return path
	}
	lower := directory("lower")
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(lower, name), text, 0o755))
	}
	for i := range containers {
		of := strings.Repeat("x", i+1)
		mount("overlay", directory("root"+of), "lowerdir="+lower+",upperdir="+directory("upper"+of)+",workdir="+directory("work"+of))
		roots = append(roots, base+"/root"+of)
	}
	return roots
}

// Containers share the files of an image. One that writes to a file of its own says nothing of what
// the others map: neither what is known of it, nor rows, nor names.
func TestWrittenInAnotherContainer(t *testing.T) {
	text, err := os.ReadFile("/bin/sleep")
	require.NoError(t, err)
	evil := bytes.ReplaceAll(text, []byte("GLIBC"), []byte("glibc"))
	roots := image(t, 2, map[string][]byte{"sleep": text})
	// As BPF names files: what is mapped is the image's, whatever is written later.
	c := newRowsFake(t, func(f *os.File) (record.FileKey, error) {
		return record.FileKey{Inode: 1, Size: uint64(len(text))}, nil
	})
	files, cmd := c.start(roots[0] + "/sleep")
	theirs := files[0]
	require.NoError(t, theirs.Facts().Fault)
	opened, size, err := theirs.Open()
	require.NoError(t, err)
	defer opened.Close()
	require.Equal(t, text, read(t, opened, size))
	c.ask(cmd.Process.Pid)

	// They write in place: the file in the image stays, and so does what is mapped.
	own, err := os.OpenFile(roots[0]+"/sleep", os.O_WRONLY, 0)
	if err == nil {
		_, err = own.WriteAt(evil, 0)
		require.NoError(t, err)
		require.NoError(t, own.Close())
	} else { // a kernel may deny to write to a program that runs
		require.ErrorIs(t, err, unix.ETXTBSY)
		require.NoError(t, os.Chmod(roots[0]+"/sleep", 0o777))
	}
	_, err = opened.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, procfs.ErrReplaced)
	_, _, err = theirs.Open()
	require.ErrorIs(t, err, procfs.ErrReplaced)
	c.buildAll()
	require.Equal(t, rowsUnknown, theirs.rows.state)

	files, cmd = c.start(roots[1] + "/sleep")
	ours := files[0]
	require.NotSame(t, theirs, ours)
	require.Equal(t, theirs.Key(), ours.Key(), "one file to the kernel")
	opened, size, err = ours.Open()
	require.NoError(t, err)
	defer opened.Close()
	require.Equal(t, text, read(t, opened, size))
	c.ask(cmd.Process.Pid)
	c.buildAll()
	require.Equal(t, rowsReady, ours.origin().rows.state)
}

// What is read while somebody writes is not believed, and read again through others.
func TestWrittenWhileRead(t *testing.T) {
	text, err := os.ReadFile("/bin/sleep")
	require.NoError(t, err)
	roots := image(t, 2, map[string][]byte{"sleep": text})
	named := 0
	c := newRowsFake(t, func(f *os.File) (record.FileKey, error) {
		if named++; named == 1 {
			require.NoError(t, os.Chmod(roots[0]+"/sleep", 0o777)) // copies it
		}
		return record.FileKey{Inode: 1, Size: uint64(len(text))}, nil
	})
	of := func(path string) (*File, error) {
		pid := c.startOnly(path).Process.Pid
		for m, err := range (procfs.FS{}).Mappings(pid) {
			require.NoError(t, err)
			if m.Perms&procfs.PermExec != 0 && m.Path == path {
				return c.cache.of(pid, Owner{}, m)
			}
		}
		require.Fail(t, "not mapped", path)
		return nil, nil
	}
	_, err = of(roots[0] + "/sleep")
	require.ErrorIs(t, err, procfs.ErrReplaced)
	f, err := of(roots[1] + "/sleep")
	require.NoError(t, err)
	require.NoError(t, f.Facts().Fault)
	require.NotEmpty(t, f.Facts().HTLHash)
}

func read(t *testing.T, file io.ReaderAt, size int64) []byte {
	t.Helper()
	data, err := io.ReadAll(io.NewSectionReader(file, 0, size))
	require.NoError(t, err)
	return data
}

// Rows of a file that could not be read to its end are no rows, and read again later.
func TestRowsOfFaultyFile(t *testing.T) {
	f := newRowsFake(t, nil)
	files, cmd := f.start("/bin/sleep")
	text := contents(t, files[0])
	e, err := elf.NewFile(bytes.NewReader(text))
	require.NoError(t, err)
	eh := e.Section(".eh_frame")
	_, err = f.read(t.Context(), &faulting{text, int64(eh.Offset + eh.Size/2)}, int64(len(text)), 0)
	require.ErrorIs(t, err, errClosed)
	require.ErrorIs(t, err, unix.EIO)
	require.Empty(t, f.rec.tables)

	at := files[0].places.all()[0]
	elsewhere := at
	elsewhere.mapping.Start, elsewhere.mapping.Inode = 0, 1
	files[0].places.see(elsewhere)
	f.cache.Close()
	f.ask(cmd.Process.Pid)
	f.buildAll()
	require.Equal(t, rowsUnknown, files[0].rows.state)
	files[0].places.see(at) // of the same process
	f.clock.Add(int64(retryRows) - 1)
	f.ask(cmd.Process.Pid)
	require.Equal(t, rowsUnknown, files[0].rows.state)
	f.clock.Add(1)
	f.ask(cmd.Process.Pid)
	f.buildAll()
	require.Equal(t, rowsReady, files[0].rows.state)
}
