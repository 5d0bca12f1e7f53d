//go:build linux

package executable

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const pauser = target.Common + `int main(void) { puts("1"); fflush(stdout); await(); return 0; }`

func newCache(t *testing.T) *Cache {
	c := NewCache(Options{MaxFiles: 10, MaxDescriptors: 10})
	t.Cleanup(c.Close)
	return c
}

// placeOf returns where a program that runs pauser maps its code.
func placeOf(t *testing.T, p *target.Program) place {
	t.Helper()
	var ready int
	p.Line(&ready)
	for m, err := range (procfs.FS{}).Mappings(p.PID) {
		require.NoError(t, err)
		if m.Path == p.Path && m.Perms&procfs.PermExec != 0 {
			return place{pid: p.PID, mapping: m}
		}
	}
	require.Fail(t, "not mapped", p.Path)
	return place{}
}

func contents(t *testing.T, f *File) []byte {
	t.Helper()
	file, size, err := f.Open()
	require.NoError(t, err)
	defer file.Close()
	return read(t, file, size)
}

// TestHTLHashSmall covers files in which head and tail overlap.
func TestHTLHashSmall(t *testing.T) {
	for _, n := range []int{0, 1, 4095, 4096, 4097, 8192} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i * 7)
		}
		head, tail := data[:min(n, 4096)], data[max(0, n-4096):]
		all := append(append(append([]byte{}, head...), tail...), binary.BigEndian.AppendUint64(nil, uint64(n))...)
		want := sha256.Sum256(all)
		got, err := htlHash(bytes.NewReader(data), int64(n))
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(want[:16]), got)
	}
	_, err := htlHash(bytes.NewReader(nil), 10)
	require.Error(t, err, "the file has shrunk")
}

// The files that were not mapped for the longest time give way, and their memory is free then.
func TestFilesGiveWay(t *testing.T) {
	memory := budget.NewMemory(1 << 30)
	c := NewCache(Options{MaxFiles: 2, Memory: memory})
	key := func(inode uint64) procfs.FileID { return procfs.FileID{Inode: inode} }
	first, second := c.file(key(1), "/1", 0), c.file(key(2), "/2", 0)
	held := memory.Part(budget.OfFiles)
	require.Same(t, first, c.file(key(1), "/1", 0))
	c.file(key(3), "/3", 0)
	require.Equal(t, 2, c.Len())
	require.Same(t, first, c.file(key(1), "/1", 0), "it was used after the second")
	require.NotSame(t, second, c.file(key(2), "/2", 0))
	require.Equal(t, held, memory.Part(budget.OfFiles))

	// For want of memory all go that no process maps and that have no rows.
	rows := NewRows(RowsOptions{MaxBytes: 1})
	used, ready := c.file(key(1), "/1", 0), c.file(key(2), "/2", 0)
	used.users.Add(1)
	ready.rows.state = rowsReady
	require.Zero(t, c.DropUnused(rows))
	ready.rows.state = rowsUnknown
	require.Equal(t, 1, c.DropUnused(rows))
	require.Same(t, used, c.file(key(1), "/1", 0))

	// What a process still maps is held, and so it counts.
	c.file(key(4), "/4", 0).Use(1)
	c.file(key(5), "/5", 0)
	require.NotSame(t, used, c.byKey[key(4)].Value)
	require.Nil(t, c.byKey[key(1)])
	c.EndInterval()
	require.Equal(t, held/2*3, memory.Part(budget.OfFiles))
	used.Use(-1)
	c.EndInterval()
	require.Equal(t, held, memory.Part(budget.OfFiles))
}

// Who maps ever more files has his own read again, whether he still maps them or not, and nobody else's.
func TestFilesOfUsers(t *testing.T) {
	const most = 4 * slackShare
	c := NewCache(Options{MaxFiles: most})
	inode := uint64(0)
	add := func(n int, by uint32) (files []*File) {
		for range n {
			inode++
			files = append(files, c.file(procfs.FileID{Inode: inode}, "/", by))
		}
		return files
	}
	known := func(files []*File) (n int) {
		for _, f := range files {
			if e := c.byKey[f.key]; e != nil && e.Value == f {
				n++
			}
		}
		return n
	}
	others := add(most/4, 1)
	mapped := add(most/2, 2)
	for _, f := range mapped {
		f.Use(1)
	}
	unused := add(most/4, 2)
	add(1, 2)
	require.Equal(t, most-most/slackShare, c.Len())
	require.Equal(t, len(unused)-most/slackShare-1, known(unused), "what no process maps goes first")
	require.Equal(t, len(mapped), known(mapped))
	add(10*most, 2)
	for range 10 * most {
		add(1, 2)[0].Use(1)
	}
	require.Equal(t, len(others), known(others))
	require.LessOrEqual(t, c.Len(), most)
	require.Equal(t, map[uint32]int{1: len(others), 2: c.Len() - len(others)}, c.users)

	// The newest one stays, though its user has most.
	c = NewCache(Options{MaxFiles: most})
	for uid := range uint32(most/2 - 2) {
		add(2, 10+uid)
	}
	add(4, 1)
	require.Equal(t, 1, known(add(1, 1)))
	require.Equal(t, most-most/slackShare, c.Len())

	// Where each has a few, nobody's are many.
	for uid := range uint32(2 * most) {
		require.Equal(t, 1, known(add(1, 10+uid)))
		require.LessOrEqual(t, c.Len(), most)
		require.LessOrEqual(t, len(c.users), most)
	}
}

// A file that is being opened through one process, which may never answer, is read through another's.
func TestFileOpenedThroughHangingProcess(t *testing.T) {
	at := placeOf(t, target.Start(t, target.Compile(t, "p", pauser)))
	var names atomic.Int32
	opened, answers := make(chan struct{}), make(chan struct{})
	c := NewCache(Options{MaxFiles: 10, MaxDescriptors: 10, NameFile: func(*os.File) (record.FileKey, error) {
		if names.Add(1) == 1 {
			close(opened)
			<-answers
		}
		return record.FileKey{}, unix.ENOSYS
	}})
	t.Cleanup(c.Close)
	var late sync.WaitGroup
	late.Go(func() {
		_, err := c.of(at.pid, Owner{UID: 1}, at.mapping)
		require.NoError(t, err)
	})
	<-opened
	f, err := c.of(at.pid, Owner{UID: 2}, at.mapping)
	require.NoError(t, err)
	require.NotEmpty(t, f.HTLHash())
	close(answers)
	late.Wait()
}

// A file that was written over after its process has ended is not read in place of the one that ran.
func TestKeptFileIsWritten(t *testing.T) {
	path := target.Compile(t, "p", pauser)
	p := target.Start(t, path)
	at := placeOf(t, p)
	c := newCache(t)
	f, err := c.of(at.pid, at.owner, at.mapping)
	require.NoError(t, err)
	p.Stop()
	link := path + ".link"
	require.NoError(t, os.Link(path, link))
	require.NoError(t, os.Remove(link))
	require.NotEmpty(t, contents(t, f), "its links have changed, and nothing else")
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer file.Close()
	_, err = file.Write([]byte("\x7fELF"))
	require.NoError(t, err)
	_, _, err = f.Open()
	require.Error(t, err)
	require.Zero(t, c.Descriptors())
}

// Who has not answered before the end keeps no file open after it.
func TestNothingIsKeptAfterClose(t *testing.T) {
	c := newCache(t)
	c.Close()
	file, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, c.opts.descriptors.keep(&File{}, file, Owner{}))
	require.Zero(t, c.Descriptors())
}

// A file that could not be read is read for the next process that maps it.
func TestUnreadableFileIsTriedAgain(t *testing.T) {
	p := target.Start(t, target.Compile(t, "p", pauser))
	at := placeOf(t, p)
	c := newCache(t)
	key, err := procfs.FS{}.StatMapped(at.pid, at.mapping)
	require.NoError(t, err)
	_, err = c.file(key, p.Path, 0).load(Owner{}, c.firstOf)
	require.Error(t, err, "nobody maps it yet")
	f, err := c.of(at.pid, at.owner, at.mapping)
	require.NoError(t, err)
	require.NotEmpty(t, f.HTLHash())

	// Nor is it the last word that another process could not read it.
	c = newCache(t)
	failed := c.file(key, p.Path, 0)
	failed.once.Do(func() { failed.err = procfs.ErrReplaced; failed.loaded.Store(true) })
	f, err = c.of(at.pid, at.owner, at.mapping)
	require.NoError(t, err)
	require.NotSame(t, failed, f)
	require.NotEmpty(t, f.HTLHash())
}

// What is kept of a file is counted as long as it is kept.
func TestFileMemory(t *testing.T) {
	at := placeOf(t, target.Start(t, target.Compile(t, "p", pauser)))
	c := newCache(t)
	c.used = budget.NewMemory(1 << 30)
	f, err := c.of(at.pid, at.owner, at.mapping)
	require.NoError(t, err)
	held := func() int64 { return c.used.Part(budget.OfFiles) / 2 } // what is on Go's heap counts twice
	want := fileBytes + len(f.path) + f.facts.bytes() + len(at.mapping.Path)
	require.Greater(t, f.facts.bytes(), len(f.facts.Layout.Loads)*50+len(f.facts.Interp))
	require.EqualValues(t, want, held())
	other := at
	other.owner = Owner{1000, "another"}
	_, err = c.of(other.pid, other.owner, other.mapping)
	require.NoError(t, err)
	require.EqualValues(t, want+len(at.mapping.Path)+len("another"), held())
	c.DropUnused(NewRows(RowsOptions{MaxBytes: 1}))
	require.Zero(t, held())
}

// A file is opened where any owner's process still maps it, whoever was seen last.
func TestOpenThroughOthers(t *testing.T) {
	at := placeOf(t, target.Start(t, target.Compile(t, "p", pauser)))
	elsewhere := placeOf(t, target.Start(t, target.Compile(t, "q", pauser)))
	c := newCache(t)
	f, err := c.of(at.pid, at.owner, at.mapping)
	require.NoError(t, err)
	c.Close()
	c.opts.descriptors.max = 0
	version := f.places.version()
	for i := range uint32(maxPlaces - 1) {
		elsewhere.owner = Owner{UID: 1000 + i}
		f.places.see(elsewhere)
		require.NotEqual(t, version, f.places.version())
		version = f.places.version()
		f.places.see(elsewhere)
		require.Equal(t, version, f.places.version(), "the same process")
		require.NotEmpty(t, contents(t, f))
	}
	nearest := func(by Owner) Owner { return f.places.nearest(Asker{Owner: by})[0].owner }
	require.Equal(t, at.owner, nearest(at.owner))
	require.Equal(t, at.owner, nearest(Owner{at.owner.UID, "another"}), "of the same user")
	require.Equal(t, elsewhere.owner, nearest(Owner{UID: noUser}), "who was seen last")
	elsewhere.owner.UID--
	elsewhere.owner.Container = "another"
	f.places.see(elsewhere)
	require.Len(t, f.places.all(), maxPlaces)
	_, _, err = f.Open()
	require.ErrorIs(t, err, procfs.ErrReplaced)
}

// A file is opened through the process that asks, also when another one of its owner was seen since that has ended; but
// only if that process has it mapped.
func TestOpenThroughWhoAsks(t *testing.T) {
	testutil.RequireRoot(t) // what is mapped is opened, not what has its path
	path := target.Compile(t, "p", pauser)
	at := placeOf(t, target.Start(t, path))
	short := target.Start(t, path)
	elsewhere := placeOf(t, target.Start(t, target.Compile(t, "q", pauser)))
	c := NewCache(Options{MaxFiles: 10})
	t.Cleanup(c.Close)
	f, err := c.of(at.pid, at.owner, at.mapping)
	require.NoError(t, err)
	gone := placeOf(t, short)
	_, err = c.of(gone.pid, gone.owner, gone.mapping)
	require.NoError(t, err)
	short.Stop()
	require.NoError(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+".elsewhere"), "as if seen from another root")
	_, _, err = f.OpenBy(Asker{Owner: at.owner})
	require.ErrorIs(t, err, ErrNotOpened)
	_, _, err = f.OpenBy(Asker{elsewhere.owner, elsewhere.pid, elsewhere.mapping})
	require.ErrorIs(t, err, ErrNotOpened)

	m := Mapping{Start: at.mapping.Start, Limit: at.mapping.Limit, Offset: at.mapping.Offset, Inode: at.mapping.Inode, Path: path}
	file, _, err := f.OpenBy(m.AskedFor(at.pid, at.owner))
	require.NoError(t, err)
	require.NoError(t, file.Close())
	_, err = f.ThreadDB(Asker{Owner: at.owner})
	require.ErrorIs(t, err, ErrNotOpened)
	_, err = f.ThreadDB(m.AskedFor(at.pid, at.owner))
	require.ErrorIs(t, err, tlsresolve.ErrNoThreadDB)

	r := newRowsFake(t, nil)
	r.opts.Changed = func([]uint64) {}
	f.Use(1)
	_, ok := r.Of(f, Waiter{Handle: 1})
	require.True(t, ok)
	r.buildAll()
	require.False(t, r.Loaded(f))
	r.clock.Add(int64(retryRows))
	_, ok = r.Of(f, Waiter{Handle: 1, PID: at.pid, Mapping: &m})
	require.True(t, ok)
	r.buildAll()
	require.True(t, r.Loaded(f))
}

// What a process maps now is not read for a file that it mapped before.
func TestOpenReplaced(t *testing.T) {
	at := placeOf(t, target.Start(t, target.Compile(t, "p", pauser)))
	now, err := newCache(t).of(at.pid, at.owner, at.mapping)
	require.NoError(t, err)
	before := &File{key: now.key, path: now.path, opts: newCache(t).opts}
	before.key.CtimeNs--
	before.places.see(at)
	_, _, err = before.Open()
	require.ErrorIs(t, err, procfs.ErrReplaced)
}

// The version of labels is what the file has: in constants, in data, and where it has nothing and the process zeros.
func TestFileVersion(t *testing.T) {
	const variable = "__thread void *custom_labels_current_set;\nint main(void) { custom_labels_current_set = 0; return 0; }\n"
	for define, want := range map[string]int64{
		"const int custom_labels_abi_version = 7;": 7, "int custom_labels_abi_version = 8;": 8, "int custom_labels_abi_version;": 0, "": -1,
	} {
		file, err := os.Open(target.Compile(t, "p", define+"\n"+variable, "-rdynamic"))
		require.NoError(t, err)
		defer file.Close()
		stat, err := file.Stat()
		require.NoError(t, err)
		facts, err := ReadFacts(t.Context(), file, stat.Size())
		require.NoError(t, err)
		require.Len(t, facts.Plans, 1)
		require.Equal(t, want, facts.Plans[0].FileVersion, define)
	}
}
