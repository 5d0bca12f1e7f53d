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
		c.close(closing{fd: fd, of: device{minor: uint32(i % 3)}})
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
		require.NoError(t, d.keep(&files[i], w, Owner{}))
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
	d.closer.running = map[device]Owner{} // and none ever comes back
	for i := range uint32(maxClosers) {
		d.closer.running[device{major: 1 << 31, minor: i}] = Owner{}
	}
	file, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer file.Close()
	var files [8]File
	for i := range files {
		require.NoError(t, d.keep(&files[i], file, Owner{}))
	}
	require.Equal(t, 2, d.len())
	d.closeUnused()
	require.Zero(t, d.len())
	require.NoError(t, d.keep(&files[0], file, Owner{}))
	require.Zero(t, d.len())
	for _, f := range d.closer.files {
		require.NoError(t, unix.Close(f.fd))
	}
}

// A file system whose files do not let themselves be closed keeps none of another one open.
func TestCloserHangsForOne(t *testing.T) {
	d := newDescriptors(8 * maxClosers)
	file, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer file.Close()
	state, err := stateOf(int(file.Fd()))
	require.NoError(t, err)
	d.closer.running = map[device]Owner{state.device: {}} // and it never comes back
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	var files [2 * maxClosers]File
	for i := range files {
		require.NoError(t, d.keep(&files[i], file, Owner{}))
	}
	d.closeUnused()
	require.NoError(t, d.keep(&files[0], w, Owner{}))
	require.NoError(t, w.Close())
	d.closeUnused()
	require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = r.Read(make([]byte, 1))
	require.ErrorContains(t, err, "EOF")
	all, _, _ := d.closer.waiting(Owner{})
	require.Equal(t, len(files), all)
	next, ok := d.closer.next(closing{of: state.device}) // it answers after all
	require.True(t, ok)
	for _, f := range append(d.closer.files, next) {
		require.NoError(t, unix.Close(f.fd))
	}
}

// Files of one owner and of one user that do not let themselves be closed leave closers for others.
func TestCloserShares(t *testing.T) {
	c := closer{running: map[device]Owner{}}
	devices := uint32(0)
	closes := func(by Owner) (n int) { // none ever comes back
		for range 2 * maxClosers {
			devices++
			c.files = append(c.files, closing{of: device{minor: devices}, by: by})
		}
		for _, ok := c.take(); ok; _, ok = c.take() {
			n++
		}
		return n
	}
	require.Equal(t, maxOwnerClosers, closes(Owner{UID: 1}))
	require.Equal(t, maxUserClosers-maxOwnerClosers, closes(Owner{UID: 1, Container: "a"}))
	require.Zero(t, closes(Owner{UID: 1, Container: "b"}))
	require.Equal(t, maxOwnerClosers, closes(Owner{UID: 2}))
	require.Equal(t, maxOwnerClosers, closes(Owner{UID: 3}))
	require.Zero(t, closes(Owner{UID: 4}), "that is all")

	// When one comes back, all that waited for its device or for its owner begins.
	c = closer{running: map[device]Owner{{minor: 1}: {UID: 1}, {minor: 2}: {UID: 1}, {minor: 3}: {UID: 1}, {minor: 4}: {UID: 1}}}
	c.files = []closing{{-1, device{minor: 1}, Owner{UID: 2}}, {-1, device{minor: 5}, Owner{UID: 1}}}
	_, ok := c.next(closing{of: device{minor: 1}})
	require.True(t, ok)
	require.Empty(t, c.files)
}

// keptForEver keeps files open on a device that does not let one of an owner be closed, until it answers.
func keptForEver(t *testing.T, most int, by Owner) (d *descriptors, file *os.File, answers func()) {
	t.Helper()
	d = newDescriptors(most)
	file, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	state, err := stateOf(int(file.Fd()))
	require.NoError(t, err)
	d.closer.running = map[device]Owner{state.device: by}
	return d, file, func() { delete(d.closer.running, state.device) }
}

// Of an owner whose files do not let themselves be closed no more are kept than a share; others have theirs kept, and
// closed.
func TestKeptOfOwner(t *testing.T) {
	const most = 8
	hostile, other := Owner{UID: 1}, Owner{UID: 2}
	d, file, answers := keptForEver(t, most, hostile)
	var files [4 * most]File
	keep := func(from, to int, by Owner) {
		for i := from; i < to; i++ {
			require.NoError(t, d.keep(&files[i], file, by))
		}
	}
	keep(0, most, hostile)
	d.closeUnused()
	keep(most, 2*most, hostile)
	require.Zero(t, d.len())
	require.EqualValues(t, most, d.refused.Load())
	keep(2*most, 3*most, other)
	require.Equal(t, most, d.len())
	all, ofUser, ofOwner := d.closer.waiting(hostile)
	require.Equal(t, []int{most, most, most}, []int{all, ofUser, ofOwner})
	keep(3*most, 4*most, other)
	require.Equal(t, most, d.len(), "as many may wait as are kept")
	require.EqualValues(t, 2*most, d.refused.Load())
	answers()
	d.closeAll()
	require.Empty(t, d.closer.files)
}

// Whatever containers a user has, others have files kept while his do not let themselves be closed.
func TestKeptOfUser(t *testing.T) {
	const most = 8
	d, file, answers := keptForEver(t, most, Owner{UID: 1})
	var files [8 * most]File
	next := 0
	keep := func(n int, by Owner) {
		for range n {
			require.NoError(t, d.keep(&files[next], file, by))
			next++
		}
	}
	for _, container := range []string{"a", "b", "c", "d"} {
		keep(most/2, Owner{UID: 1, Container: container})
		d.closeUnused()
	}
	all, ofUser, ofOwner := d.closer.waiting(Owner{UID: 1, Container: "a"})
	require.Equal(t, []int{most, most, most / 2}, []int{all, ofUser, ofOwner}, "two have all that is the user's")
	require.EqualValues(t, most, d.refused.Load())
	keep(most, Owner{UID: 2})
	require.Equal(t, most, d.len())
	answers()
	d.closeAll()

	// As bad as it gets: all that is kept is the user's when nearly as much of his waits as may.
	d, file, answers = keptForEver(t, most, Owner{UID: 1})
	next = 0
	keep(most/2, Owner{UID: 1, Container: "a"})
	keep(1, Owner{UID: 1, Container: "b"})
	d.closeUnused()
	keep(most+1, Owner{UID: 1, Container: "b"})
	keep(1, Owner{UID: 1, Container: "c"})
	require.EqualValues(t, 1, d.refused.Load(), "the last one")
	d.closeUnused()
	keep(most, Owner{UID: 2})
	require.Equal(t, most/4, d.len())
	answers()
	d.closeAll()
	require.Empty(t, d.closer.files)
}

// A user with more files than are kept open gives up his own, those used longest ago, and no other user's.
func TestKeptUsersApart(t *testing.T) {
	const most = 4
	d := newDescriptors(most)
	file, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer file.Close()
	var files [9]File
	for i := range files {
		by := Owner{UID: 1}
		if i == 0 {
			by.UID = 2
		}
		require.NoError(t, d.keep(&files[i], file, by))
		require.LessOrEqual(t, d.len(), most)
		d.closer.wait(time.Minute)
	}
	kept := func(i int) bool { return d.byFile[&files[i]] != nil }
	for i := range files {
		require.Equal(t, i == 0 || i > len(files)-most, kept(i), "file %d", i)
	}
	first, err := d.open(&files[6])
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.NoError(t, d.keep(&files[1], file, Owner{UID: 3}))
	require.Equal(t, []bool{true, true, false}, []bool{kept(0), kept(6), kept(7)})
	d.closeAll()
	require.Empty(t, d.users)
}
