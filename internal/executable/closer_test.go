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
	for range 10 * maxClosers {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		fd, err := duplicate(int(w.Fd()))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		readers = append(readers, r)
		c.close(fd)
	}
	for _, r := range readers {
		require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := r.Read(make([]byte, 1))
		require.ErrorContains(t, err, "EOF", "nobody has it open to write to it")
		require.NoError(t, r.Close())
	}
	c.wait(time.Minute)
	require.Zero(t, c.running)
	require.Empty(t, c.fds)
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
	require.Empty(t, d.closer.fds)
	require.Zero(t, d.closer.running)
	require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = r.Read(make([]byte, 1))
	require.ErrorContains(t, err, "EOF")
}

// While files that do not answer are being closed, no further ones are kept than there may be.
func TestCloserHangs(t *testing.T) {
	d := newDescriptors(2)
	d.closer.running = maxClosers // and none ever comes back
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
	for _, fd := range d.closer.fds {
		require.NoError(t, unix.Close(fd))
	}
}
