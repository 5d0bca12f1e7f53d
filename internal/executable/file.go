//go:build linux

package executable

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// File is a file that processes map executable: what is known of it is read
// once and shared.
type File struct {
	key  procfs.FileID
	life uint64 // of those whose key may recur, each has another one; else 0
	path string // where it was first seen
	opts *fileOptions

	once   sync.Once
	loaded atomic.Bool // once is over
	err    error       // of reading it; not an ELF file, and so on
	facts  Facts

	threadDB threadDB // of a C library
	vdso     *vdso    // if it is that
	rows     fileRows // of the first one

	held   int            // bytes that are counted; guarded by Cache.mu
	by     uint32         // whose process had it read first
	uid    uint32         // whose it is
	kernel record.FileKey // what it is to the kernel, if known; set under Cache.mu
	first  *File          // that is the same to the kernel, if it is not this one; set under Cache.mu
	closed uint64         // version of places when it could not be read for its rows; guarded by Rows.mu

	users  atomic.Int32 // processes that map it
	others atomic.Int32 // processes that map a file whose first one it is
	places places
	said   atomic.Uint32 // bits of FirstTime
}

// NewFile returns a file of which this is known, or why it is not, and which cannot be opened:
// for tests of what is done with files.
func NewFile(id procfs.FileID, path string, facts Facts, err error) *File {
	f := &File{key: id, path: path, facts: facts, err: err, opts: &fileOptions{descriptors: newDescriptors(0)}}
	f.once.Do(func() { f.loaded.Store(true) })
	return f
}

// ID returns what the file is to the processes that map it.
func (f *File) ID() procfs.FileID { return f.key }

// Key identifies the file; it can be used as the key of caches. What several mounts show of one
// file has one key, but for files of images (procfs.FileID.OfImage).
func (f *File) Key() procfs.FileID {
	key := f.origin().key
	if f.life != 0 {
		key.Mount = f.life
	}
	return key
}

// Path returns a path under which the file was seen. Valid UTF-8.
func (f *File) Path() string { return f.path }

// UID returns the user who owns the file, and may so write what he likes into it.
func (f *File) UID() uint32 { return f.uid }

// Facts returns what was read of the file, as far as it could be (Err). They are not to be
// changed.
func (f *File) Facts() *Facts { return &f.facts }

// Err returns why the file could not be read, for instance as it is no ELF file.
func (f *File) Err() error { return f.err }

// Plain reports whether the file was read, and is no ELF file: nothing is known of what is in it.
func (f *File) Plain() bool { return f.err != nil && f.facts.Fault == nil }

// Continues reports whether a file is the one before in a later state, with the same contents as far as
// is known of them: links, removal and changed attributes give it another time of change, too.
func (f *File) Continues(before *File) bool {
	id := before.key
	id.CtimeNs = f.key.CtimeNs
	return id == f.key && (f.Plain() && before.Plain() || f.HTLHash() != "" && f.HTLHash() == before.HTLHash())
}

// FirstTime reports whether it is asked for the first time with this number, which is below
// 32: what there is to say of a file is said once, however many processes map it.
func (f *File) FirstTime(number int) bool { return f.said.Or(1<<number)&(1<<number) == 0 }

// Use counts the processes that map the file.
func (f *File) Use(n int32) {
	f.users.Add(n)
	if f.first != nil {
		f.first.others.Add(n)
	}
}

// Unused reports whether no process maps a file, nor one with the same contents.
func (f *File) Unused() bool { return f.users.Load()+f.others.Load() == 0 }

// BuildIDGNU returns the GNU build id in hexadecimal, "" if there is none.
func (f *File) BuildIDGNU() string { return f.facts.BuildIDGNU }

// BuildIDGo returns the build id that Go's linker wrote, "" if there is none. Valid UTF-8.
func (f *File) BuildIDGo() string { return f.facts.BuildIDGo }

// HTLHash returns process.executable.build_id.htlhash as OpenTelemetry defines
// it: a hash of the file's head, tail and length. "" if it could not be read.
func (f *File) HTLHash() string { return f.facts.HTLHash }

// ErrNotOpened says that a file is not kept open, and cannot be opened through any process that is known to map it.
// Another one may come.
var ErrNotOpened = errors.New("no process that maps it opens it")

// Open is OpenBy of nobody.
func (f *File) Open() (*Contents, int64, error) { return f.OpenBy(Asker{Owner: Owner{UID: noUser}}) }

// OpenBy opens the file for reading; the caller closes it. It works for a while
// after the last process that maps the file has exited; then the error is ErrNotOpened. It may block on the
// file's filesystem, and on the process through which it is opened: the one that asks, or one of its owner,
// if there is one.
func (f *File) OpenBy(by Asker) (*Contents, int64, error) {
	if f.vdso != nil {
		return f.vdso.open()
	}
	file, err := f.opts.descriptors.open(f)
	if err != nil {
		return nil, 0, err
	}
	if file != nil {
		c, err := f.opened(file)
		if err == nil {
			return c, f.key.Size, nil
		}
		f.opts.descriptors.forget(f)
	}
	for _, at := range f.places.nearest(by) {
		c, failed := f.openAt(&at)
		if failed == nil {
			// A file without a kept descriptor is still readable now.
			_ = f.opts.descriptors.keep(f, c.file, at.owner)
			return c, f.key.Size, nil
		}
		err = cmp.Or(err, failed) // that of the nearest one says most
	}
	return nil, 0, fmt.Errorf("open %q: %w: %w", f.path, ErrNotOpened, cmp.Or(err, os.ErrNotExist))
}

func (f *File) openAt(at *place) (*Contents, error) {
	file, err := f.opts.fs.OpenMapped(at.pid, at.mapping, f.key)
	if err != nil {
		return nil, err
	}
	return f.opened(file)
}

// opened takes an open file over, which is closed if it is another one by now.
func (f *File) opened(file *os.File) (*Contents, error) {
	c, err := newContents(file, f.key)
	if err != nil {
		file.Close()
		return nil, err
	}
	return c, nil
}

// load reads the file once, and reports whether that was this call. Others that need it wait for what is read of it,
// but not for the process through which it is opened: that may be another user's, and never answer. An error says that
// it could not be opened, so that nothing is known of it yet. firstOf notes what it is to the kernel, and returns the
// first file that is the same there, which may be this one.
func (f *File) load(by Owner, firstOf func(*File, record.FileKey) *File) (mine bool, err error) {
	if f.loaded.Load() {
		return false, nil
	}
	file, size, err := f.OpenBy(Asker{Owner: by})
	if err != nil {
		return false, err
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.file.Fd()), &st); err != nil {
		return false, fmt.Errorf("stat %q: %w", f.path, err)
	}
	kernel := f.named(file)
	f.once.Do(func() {
		defer f.loaded.Store(true)
		mine = true
		f.uid = st.Uid
		if kernel != (record.FileKey{}) {
			if first := firstOf(f, kernel); first != f {
				mine = false
				first.once.Do(func() {}) // it is being read, or has been
				f.facts, f.err = first.facts, first.err
				return
			}
		}
		f.facts, f.err = ReadFacts(f.opts.ctx, file, size)
	})
	return mine, nil
}

// origin is the file that stands for all with the same contents.
func (f *File) origin() *File {
	if f.first != nil {
		return f.first
	}
	return f
}

// named returns what an open file is to the kernel, zero if that cannot be known, or may be another file later.
func (f *File) named(c *Contents) record.FileKey {
	if f.opts.name == nil || f.vdso != nil || f.key.OfImage() {
		return record.FileKey{}
	}
	key, err := f.opts.name(c.file)
	if err != nil || int64(key.Size) != f.key.Size {
		return record.FileKey{}
	}
	return key
}
