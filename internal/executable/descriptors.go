//go:build linux

package executable

import (
	"container/list"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// descriptors keeps a bounded number of files open, so that they can be read
// when the last process that maps them has exited and they have been deleted.
type descriptors struct {
	max     int
	closer  closer
	refused atomic.Uint64 // files that were not kept because others wait to be closed

	mu     sync.Mutex
	order  *list.List // of *descriptor, the most recently used first
	users  map[uint32]int
	byFile map[*File]*list.Element
	closed bool // by closeAll: none is kept any more
}

type descriptor struct {
	file  *File
	fd    int
	by    Owner     // through whose process it was opened
	state fileState // then
}

func newDescriptors(max int) *descriptors {
	return &descriptors{max: max, order: list.New(), users: map[uint32]int{}, byFile: map[*File]*list.Element{}}
}

// Of quarters of what may be kept open, so many may wait to be closed of one owner, and of one user: beyond that, nothing
// is kept for him. What is kept for a user then, all of it at most, may come to wait, too: that leaves a quarter to others.
const ownerQuarters, userQuarters = 2, 3

// refuses reports whether too many files wait to be closed for one more to be kept for an owner: as many may wait as are
// kept. d.mu is held.
func (d *descriptors) refuses(by Owner) bool {
	all, ofUser, ofOwner := d.closer.waiting(by)
	return d.order.Len()+all >= 2*d.max || 4*ofUser >= userQuarters*d.max || 4*ofOwner >= ownerQuarters*d.max
}

// keep duplicates an open file, which was opened through an owner's process.
func (d *descriptors) keep(f *File, open *os.File, by Owner) error {
	if d.max <= 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.byFile[f] != nil {
		return nil
	}
	if d.refuses(by) {
		d.refused.Add(1)
		return nil
	}
	state, err := stateOf(int(open.Fd()))
	if err != nil {
		return err
	}
	fd, err := duplicate(int(open.Fd()))
	if err != nil {
		return err
	}
	d.byFile[f] = d.order.PushFront(&descriptor{f, fd, by, state})
	d.users[by.UID]++
	for d.order.Len() > d.max {
		d.drop(d.excess())
	}
	return nil
}

// excess returns what gives way, of the user who has most what was used longest ago: so who maps ever more files has
// none of another user's closed. There is something. d.mu is held.
func (d *descriptors) excess() *list.Element {
	most := slices.Max(slices.Collect(maps.Values(d.users)))
	e := d.order.Back()
	for d.users[e.Value.(*descriptor).by.UID] < most {
		e = e.Prev()
	}
	return e
}

// open returns a duplicate that the caller closes, or nil if the file is not kept, or was written to since.
func (d *descriptors) open(f *File) (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.byFile[f]
	if e == nil {
		return nil, nil
	}
	desc := e.Value.(*descriptor)
	if now, err := stateOf(desc.fd); err != nil || now.written(desc.state) {
		d.drop(e)
		return nil, err
	}
	d.order.MoveToFront(e)
	fd, err := duplicate(desc.fd)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.path), nil
}

// forget closes a file that is of no use any more.
func (d *descriptors) forget(f *File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.byFile[f]; e != nil {
		d.drop(e)
	}
}

// closeUnused closes the files that no process maps any more.
func (d *descriptors) closeUnused() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := d.order.Front(); e != nil; {
		next := e.Next()
		if e.Value.(*descriptor).file.users.Load() == 0 {
			d.drop(e)
		}
		e = next
	}
}

// closeAll closes all files. One that does not let itself be closed is left to that.
func (d *descriptors) closeAll() {
	d.mu.Lock()
	d.closed = true
	for d.order.Len() > 0 {
		d.drop(d.order.Back())
	}
	d.mu.Unlock()
	d.closer.wait(maxClosing)
}

func (d *descriptors) len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.order.Len()
}

func (d *descriptors) drop(e *list.Element) {
	desc := e.Value.(*descriptor)
	d.order.Remove(e)
	delete(d.byFile, desc.file)
	if d.users[desc.by.UID]--; d.users[desc.by.UID] == 0 {
		delete(d.users, desc.by.UID)
	}
	d.closer.close(closing{desc.fd, desc.state.device, desc.by})
}

// fileState tells whether a file that is open has been written to, and where it is.
type fileState struct {
	device       device
	ctime, mtime unix.StatxTimestamp
	size         uint64
}

// stateOf says what the kernel knows: it asks no file server, which may not answer.
func stateOf(fd int) (fileState, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS, &st); err != nil {
		return fileState{}, fmt.Errorf("stat open file: %w", err)
	}
	return fileState{device{st.Dev_major, st.Dev_minor}, st.Ctime, st.Mtime, st.Size}, nil
}

// written reports whether a file may have other contents than before. Its removal alone changes its ctime.
func (s fileState) written(before fileState) bool {
	return s.ctime != before.ctime && (s.mtime != before.mtime || s.size != before.size)
}

func duplicate(fd int) (int, error) {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("duplicate descriptor: %w", err)
	}
	return fd, nil
}
