//go:build linux

package executable

import (
	"container/list"
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Options of a Cache.
type Options struct {
	FS procfs.FS
	// NameFile returns what an open file is to the kernel when a process maps it; nil: what
	// several mounts show of one file is several.
	NameFile func(*os.File) (record.FileKey, error)
	// MaxFiles whose facts are kept, and MaxDescriptors that are kept open.
	MaxFiles, MaxDescriptors int
	Memory                   *budget.Memory // nil: no limit
	Now                      func() int64   // CLOCK_MONOTONIC in ns; nil: that clock
}

// fileOptions are what files need of these.
type fileOptions struct {
	ctx         context.Context // files are read until it ends
	fs          procfs.FS
	descriptors *descriptors
	name        func(*os.File) (record.FileKey, error)
}

// A Cache keeps what is known of files, of those that were mapped most recently. It is safe
// for concurrent use.
type Cache struct {
	opts *fileOptions
	end  context.CancelFunc
	max  int
	used *budget.Memory
	vdso *vdso // nil if there is none
	now  func() int64

	mu    sync.Mutex
	order *list.List     // of *File, the one mapped last in front
	users map[uint32]int // files by whose process had them read first
	byKey map[procfs.FileID]*list.Element
	lives uint64                   // files whose key may recur
	first map[record.FileKey]*File // of those that are the same to the kernel
	// faulty says when files are read again that had a fault (Facts.Fault).
	faulty map[procfs.FileID]Backoff
	// gone are files that gave way while processes map them: they are held, and counted, until none does.
	gone []*File
}

// fileBytes are held for each file, beside what depends on it.
const fileBytes = int(unsafe.Sizeof(File{})+unsafe.Sizeof(place{})) + 512 + 3*budget.MapEntryBytes

// NewCache makes an empty one.
func NewCache(opts Options) *Cache {
	ctx, end := context.WithCancel(context.Background())
	fileOpts := &fileOptions{ctx, opts.FS, newDescriptors(opts.MaxDescriptors), opts.NameFile}
	now := opts.Now
	if now == nil {
		now = func() int64 { return budget.Clock(unix.CLOCK_MONOTONIC) }
	}
	return &Cache{
		opts: fileOpts, end: end, max: opts.MaxFiles, used: opts.Memory, vdso: loadVDSO(fileOpts), now: now,
		order: list.New(), users: map[uint32]int{}, byKey: map[procfs.FileID]*list.Element{}, first: map[record.FileKey]*File{},
		faulty: map[procfs.FileID]Backoff{},
	}
}

// maxLoads is how often a file is read again that could not be read through others.
const maxLoads = 4

// of returns the file behind a mapping of an owner's process, read as far as it could be.
func (c *Cache) of(pid int, by Owner, m procfs.Mapping) (*File, error) {
	key, err := c.opts.fs.StatMapped(pid, m)
	if err != nil {
		return nil, err
	}
	for loads := 1; ; loads++ {
		f := c.file(key, m.Path, by.UID)
		seen := f.places.see(place{pid, by, m})
		mine, err := f.load(by, c.firstOf)
		if err != nil {
			if seen {
				c.weigh(f)
			}
			return nil, err // the next process may have more luck
		}
		if seen || mine {
			c.weigh(f.origin())
			c.weigh(f)
		}
		if f.first != nil {
			c.touch(f.first)
		}
		if c.renews(f, mine) {
			continue
		}
		if f.err == nil || f.facts.HTLHash != "" {
			return f, nil
		}
		// It could not be read at all. The next process may have more luck.
		c.forget(f)
		if mine || loads == maxLoads {
			return nil, f.err
		}
	}
}

func (c *Cache) file(key procfs.FileID, path string, by uint32) *File {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[key]; e != nil {
		c.order.MoveToFront(e)
		return e.Value.(*File)
	}
	f := &File{key: key, path: validUTF8(path), opts: c.opts, by: by}
	if key.MayRecur() {
		c.lives++
		f.life = c.lives
	}
	c.byKey[key] = c.order.PushFront(f)
	f.held = fileBytes + len(f.path)
	c.used.Add(budget.OfFiles, f.held)
	c.users[by]++
	c.shrink()
	return f
}

// A full cache gives up 1/slackShare more than it has to: to find what goes takes a look at all files.
const slackShare = 64

// shrink makes room if there are too many files: of the user who has most of them first those that no process maps,
// in each case those that were mapped longest ago. So who maps ever more files has his own read again, and nobody
// else's. c.mu is held.
func (c *Cache) shrink() {
	if c.order.Len() <= c.max {
		return
	}
	for most := max(c.max-c.max/slackShare, 1); c.order.Len() > most; {
		newest := c.order.Front().Value.(*File)
		uid, n := uint32(0), 0
		for user, files := range c.users {
			if user == newest.by {
				files-- // it stays
			}
			if files > n {
				uid, n = user, files
			}
		}
		c.dropTo(most, func(f *File) bool { return f.by == uid && f.Unused() })
		c.dropTo(most, func(f *File) bool { return f.by == uid })
	}
}

// dropTo drops files until there are so many, but not the newest one. c.mu is held.
func (c *Cache) dropTo(most int, goes func(*File) bool) {
	for e := c.order.Back(); c.order.Len() > most && e != c.order.Front(); {
		next := e.Prev()
		if goes(e.Value.(*File)) {
			c.drop(e)
		}
		e = next
	}
}

// weigh counts what is known of a file by now.
func (c *Cache) weigh(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[f.key]; e == nil || e.Value.(*File) != f {
		return
	}
	held := fileBytes + len(f.path) + f.places.bytes()
	if f.first == nil && f.loaded.Load() {
		held += f.facts.bytes()
	}
	c.used.Add(budget.OfFiles, held-f.held)
	f.held = held
}

// firstOf notes what a file is to the kernel, and returns the first one that is the same, which may be f.
func (c *Cache) firstOf(f *File, kernel record.FileKey) *File {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.kernel = kernel
	if first := c.first[kernel]; first != nil {
		f.first = first
		return first
	}
	if e := c.byKey[f.key]; e != nil && e.Value.(*File) == f {
		c.first[kernel] = f
	}
	return f
}

// touch keeps a file for as long as others that stand for it are used.
func (c *Cache) touch(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[f.key]; e != nil {
		c.order.MoveToFront(e)
	}
}

// drop forgets a file, which counts for as long as processes map it.
func (c *Cache) drop(e *list.Element) {
	f := c.order.Remove(e).(*File)
	delete(c.byKey, f.key)
	if c.users[f.by]--; c.users[f.by] == 0 {
		delete(c.users, f.by)
	}
	if c.first[f.kernel] == f {
		delete(c.first, f.kernel)
	}
	if f.Unused() {
		c.used.Add(budget.OfFiles, -f.held)
	} else {
		c.gone = append(c.gone, f)
	}
}

// release counts those no more that gave way and that no process maps.
func (c *Cache) release() {
	c.gone = slices.DeleteFunc(c.gone, func(f *File) bool {
		if !f.Unused() {
			return false
		}
		c.used.Add(budget.OfFiles, -f.held)
		return true
	})
}

// DropUnused forgets the files that no process maps and that have no rows.
func (c *Cache) DropUnused(r *Rows) (dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Front(); e != nil; {
		next := e.Next()
		if f := e.Value.(*File); f.Unused() && (f.first != nil || !r.Loaded(f)) {
			c.drop(e)
			dropped++
		}
		e = next
	}
	c.release()
	return dropped
}

// forget drops a file, and the one that stands for it.
func (c *Cache) forget(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range []*File{f, f.origin()} {
		if e := c.byKey[f.key]; e != nil && e.Value.(*File) == f {
			c.drop(e)
		}
	}
}

// Len returns how many files are known.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

// Descriptors returns how many are kept open.
func (c *Cache) Descriptors() int { return c.opts.descriptors.len() }

// Unkept counts the files that were not kept open because others wait to be closed.
func (c *Cache) Unkept() uint64 { return c.opts.descriptors.refused.Load() }

// EndInterval closes the files that no process maps any more, for an open file keeps its filesystem from being
// unmounted and its blocks from being freed, and counts those no more that have given way.
func (c *Cache) EndInterval() {
	c.endLives() // before they are closed: until then nobody takes their file system away
	c.opts.descriptors.closeUnused()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release()
}

// endLives forgets the files that no process maps and whose key another one may come to have.
func (c *Cache) endLives() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Front(); e != nil; {
		next := e.Next()
		if f := e.Value.(*File); f.key.MayRecur() && f.Unused() {
			c.drop(e)
		}
		e = next
	}
}

// End has no more files read: a reading that goes on ends soon, and nothing is known of its file.
func (c *Cache) End() { c.end() }

// Close ends, and closes all files.
func (c *Cache) Close() {
	c.End()
	c.opts.descriptors.closeAll()
}

func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
