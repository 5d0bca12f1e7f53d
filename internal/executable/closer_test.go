//go:build linux

package executable

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Files are closed by others than those who have them closed, and all of them.
func TestCloser(t *testing.T) {
	var c closer
	var readers []*os.File
	for i := range 10 * maxClosers {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		fd, err := duplicate(int(w.Fd()))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		readers = append(readers, r)
		c.close(fd, device{minor: uint32(i % 3)})
	}
	for _, r := range readers {
		require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := r.Read(make([]byte, 1))
		require.ErrorContains(t, err, "EOF", "nobody has it open to write to it")
		require.NoError(t, r.Close())
	}
	c.wait(time.Minute)
	require.Empty(t, c.running)
	require.Empty(t, c.files)
}

// Whoever closes all files finds them closed.
func TestCloseAll(t *testing.T) {
	d := newDescriptors(100)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	var files [100]File
	for i := range files {
		require.NoError(t, d.keep(&files[i], w))
	}
	require.NoError(t, w.Close())
	d.closeAll()
	require.Empty(t, d.closer.files)
	require.Empty(t, d.closer.running)
	require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = r.Read(make([]byte, 1))
	require.ErrorContains(t, err, "EOF")
}

// While files that do not answer are being closed, no further ones are kept than there may be.
func TestCloserHangs(t *testing.T) {
	d := newDescriptors(2)
	d.closer.running = map[device]struct{}{} // and none ever comes back
	for i := range uint32(maxClosers) {
		d.closer.running[device{major: 1 << 31, minor: i}] = struct{}{}
	}
	file, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer file.Close()
	var files [8]File
	for i := range files {
		require.NoError(t, d.keep(&files[i], file))
	}
	require.Equal(t, 2, d.len())
	d.closeUnused()
	require.Zero(t, d.len())
	require.NoError(t, d.keep(&files[0], file))
	require.Zero(t, d.len())
	for _, f := range d.closer.files {
		require.NoError(t, unix.Close(f.fd))
	}
}

// A file system whose files do not let themselves be closed keeps none of another one open.
func TestCloserHangsForOne(t *testing.T) {
	d := newDescriptors(4 * maxClosers)
	file, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer file.Close()
	state, err := stateOf(int(file.Fd()))
	require.NoError(t, err)
	d.closer.running = map[device]struct{}{state.device: {}} // and it never comes back
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	var files [2 * maxClosers]File
	for i := range files {
		require.NoError(t, d.keep(&files[i], file))
	}
	d.closeUnused()
	require.NoError(t, d.keep(&files[0], w))
	require.NoError(t, w.Close())
	d.closeUnused()
	require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = r.Read(make([]byte, 1))
	require.ErrorContains(t, err, "EOF")
	require.Equal(t, len(files), d.closer.waiting())
	next, ok := d.closer.next(closing{of: state.device}) // it answers after all
	require.True(t, ok)
	for _, f := range append(d.closer.files, next) {
		require.NoError(t, unix.Close(f.fd))
	}
}
