//go:build linux

package executable

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A user who has all of his places has rows, but not where his processes were not looked at, until
// another user's process maps the file, too.
func TestPlacesOfUsers(t *testing.T) {
	const flooder, other = 1, 2
	c := newCopies(t, 1, func(int, []byte) {}, inodeOf)
	c.places[flooder] = maxUserPlaces
	files, cmd := c.start(c.paths[0])
	f := files[0]
	ask := func(uid uint32) FileRows {
		rows, ok := c.Of(f, Waiter{Handle: uint64(cmd.Process.Pid), UID: uid})
		require.True(t, ok)
		return rows
	}
	c.opts.Changed = func([]uint64) {}
	ask(flooder)
	c.buildAll()
	require.NotZero(t, ask(flooder).ID)
	require.Len(t, c.rec.tables, 1)
	require.Empty(t, c.rec.files)
	require.EqualValues(t, 1, c.Stats().Unplaced)

	require.NotZero(t, ask(other).ID)
	c.buildAll()
	require.Equal(t, map[record.FileKey]record.TableID{f.rows.kernel: f.rows.ID}, c.rec.files)
	require.Equal(t, map[uint32]int{flooder: maxUserPlaces, other: 1}, c.places)
	ask(0)
	c.buildAll()
	require.True(t, c.place(f))
	require.Equal(t, 1, c.places[other], "it has a place")
	require.Zero(t, c.places[0])

	c.end(cmd)
	c.remove(f)
	require.Equal(t, map[uint32]int{flooder: maxUserPlaces}, c.places)
}

// A file for which several users wait has a place of one who has any left, whoever asked first.
func TestPlaceOfWaitingUsers(t *testing.T) {
	const flooder, full, other = 1, 2, 3
	c := newCopies(t, 1, func(int, []byte) {}, inodeOf)
	c.places = map[uint32]int{flooder: maxUserPlaces, full: maxUserPlaces, 0: maxRootPlaces}
	files, cmd := c.start(c.paths[0])
	c.opts.Changed = func([]uint64) {}
	for _, uid := range []uint32{flooder, full, 0, other} {
		c.Of(files[0], Waiter{Handle: uint64(cmd.Process.Pid), UID: uid})
	}
	c.buildAll()
	require.Contains(t, c.rec.files, files[0].rows.kernel)
	require.Equal(t, map[uint32]int{flooder: maxUserPlaces, full: maxUserPlaces, 0: maxRootPlaces, other: 1}, c.places)
	require.Zero(t, c.Stats().Unplaced)
}

// A file without a place gets one when its user has one again, as soon as a process is looked at
// that maps it.
func TestPlaceThatBecomesFree(t *testing.T) {
	const user = 1
	c := newCopies(t, 2, func(i int, text []byte) { text[len(text)/2] ^= byte(i) }, inodeOf)
	c.opts.Changed = func([]uint64) {}
	c.places[user] = maxUserPlaces - 1
	files := [2]*File{}
	ask := func(i int, cmd *exec.Cmd) {
		c.Of(files[i], Waiter{Handle: uint64(cmd.Process.Pid), UID: user})
		c.buildAll()
	}
	var cmds [2]*exec.Cmd
	for i := range files {
		all, cmd := c.start(c.paths[i])
		files[i], cmds[i] = all[0], cmd
		ask(i, cmd)
	}
	placed, unplaced := files[0].rows.kernel, files[1].rows.kernel
	require.Contains(t, c.rec.files, placed)
	require.NotContains(t, c.rec.files, unplaced)
	c.Of(files[1], Waiter{Handle: uint64(cmds[1].Process.Pid), UID: user})
	require.Empty(t, c.unplaced, "he has no place left")

	c.end(cmds[0])
	c.remove(files[0])
	ask(1, cmds[1])
	require.Contains(t, c.rec.files, unplaced)
	require.Equal(t, maxUserPlaces, c.places[user])
	require.EqualValues(t, 1, c.Stats().Unplaced, "it is counted once")
}

// However many users have waited for a file, or map it later, few of them are kept; and one of those has a
// place left.
func TestUsersOfReadyFile(t *testing.T) {
	c := newCopies(t, 1, func(int, []byte) {}, inodeOf)
	for uid := range uint32(record.MaxFileRows / maxUserPlaces) { // all that there are
		c.places[uid] = maxPlacesOf(uid)
	}
	files, _ := c.start(c.paths[0])
	f := files[0]
	c.opts.Changed = func([]uint64) {}
	const many = 100_000
	for uid := range uint32(10 * maxSeen) {
		c.Of(f, Waiter{Handle: 1 + uint64(uid), UID: uid})
	}
	require.Len(t, f.rows.users, 10*maxSeen)
	c.buildAll()
	require.Len(t, f.rows.users, maxSeen)
	require.Contains(t, c.rec.files, f.rows.kernel)
	for uid := range uint32(many) {
		_, ok := c.Of(f, Waiter{Handle: 1, UID: uid})
		require.True(t, ok)
	}
	require.Equal(t, maxSeen, len(f.rows.users))
}

// The vDSO has rows in all processes, also where whoever asks first has all of his places.
func TestPlaceOfVDSO(t *testing.T) {
	const flooder = 1
	c := newRowsFake(t, func(*os.File) (record.FileKey, error) { return record.FileKey{Inode: 1}, nil })
	c.places[flooder] = maxUserPlaces
	files, cmd := c.start("sleep")
	for _, f := range files {
		if f.vdso != nil {
			c.Of(f, Waiter{Handle: uint64(cmd.Process.Pid), UID: flooder})
		}
	}
	c.opts.Changed = func([]uint64) {}
	require.Equal(t, 1, c.buildAll())
	require.Contains(t, c.rec.files, record.FileKey{})
	require.Equal(t, maxUserPlaces, c.places[flooder])
}

// A user's copies of one file have one table, and a place each.
func TestPlacesOfCopies(t *testing.T) {
	c := newCopies(t, 3, func(int, []byte) {}, inodeOf)
	first, _ := c.run(0)
	placed := c.places[0]
	c.places[0] = maxRootPlaces - 1
	second, _ := c.run(1)
	third, _ := c.run(2)
	require.Equal(t, first.rows.ID, third.rows.ID)
	require.Contains(t, c.rec.files, second.rows.kernel)
	require.NotContains(t, c.rec.files, third.rows.kernel)
	c.places[0] = placed + 1
	files := []record.FileKey{first.rows.kernel, second.rows.kernel}
	c.remove(first)
	require.Equal(t, placed, c.places[0], "the table's other files have theirs")
	require.NotContains(t, c.rec.files, files[0])
	require.Contains(t, c.rec.files, files[1])
	c.remove(third)
	require.Equal(t, placed, c.places[0], "it had none")
	c.remove(second)
	require.Equal(t, placed-1, c.places[0])
}

// A file that the cache has forgotten and found again keeps its place when what was known of it before
// goes.
func TestPlaceOfFileSeenTwice(t *testing.T) {
	c := newCopies(t, 2, func(int, []byte) {}, func(os.FileInfo) uint64 { return 1 })
	first, _ := c.run(0)
	placed := c.places[0]
	delete(c.cache.first, first.kernel)
	second, _ := c.run(1)
	require.Equal(t, first.rows.kernel, second.rows.kernel)
	require.Equal(t, first.rows.ID, second.rows.ID)
	require.Equal(t, placed, c.places[0])
	c.remove(first)
	require.Equal(t, placed, c.places[0])
	require.Equal(t, second.rows.ID, c.rec.files[second.rows.kernel])
	c.remove(second)
	require.Equal(t, placed-1, c.places[0])
}
