//go:build linux

package process

import (
	"container/list"
	"strings"
	"sync"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// files caches what is known of files, the most recently mapped ones.
type files struct {
	opts *fileOptions
	max  int
	used *budget.Memory

	mu    sync.Mutex
	order *list.List // of *File
	byKey map[procfs.FileID]*list.Element
	first map[record.FileKey]*File // of those that are the same to the kernel
}

func newFiles(opts *fileOptions, max int, used *budget.Memory) *files {
	return &files{opts: opts, max: max, used: used, order: list.New(), byKey: map[procfs.FileID]*list.Element{}, first: map[record.FileKey]*File{}}
}

// maxLoads is how often a file is read again that could not be read through others.
const maxLoads = 4

// of returns the file behind a mapping of an owner's process, read as far as it could be.
func (c *files) of(pid int, by owner, m procfs.Mapping) (*File, error) {
	key, err := c.opts.fs.StatMapped(pid, m)
	if err != nil {
		return nil, err
	}
	for loads := 1; ; loads++ {
		f := c.file(key, m.Path)
		f.places.see(place{pid, by, m})
		mine := f.load(c.firstOf)
		if f.first != nil {
			c.touch(f.first)
		}
		if f.err == nil || f.facts.htlHash != "" {
			return f, nil
		}
		// It could not be read at all. The next process may have more luck.
		c.forget(f)
		if mine || loads == maxLoads {
			return nil, f.err
		}
	}
}

func (c *files) file(key procfs.FileID, path string) *File {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[key]; e != nil {
		c.order.MoveToFront(e)
		return e.Value.(*File)
	}
	f := &File{key: key, path: validUTF8(path), opts: c.opts}
	c.byKey[key] = c.order.PushFront(f)
	c.used.Add(budget.OfFiles, fileBytes+len(f.path))
	for c.order.Len() > c.max {
		c.drop(c.order.Back())
	}
	return f
}

// firstOf returns the first file that is the same to the kernel as f, which may be f.
func (c *files) firstOf(f *File) *File {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first := c.first[f.kernel]; first != nil {
		return first
	}
	if e := c.byKey[f.key]; e != nil && e.Value.(*File) == f {
		c.first[f.kernel] = f
	}
	return f
}

// touch keeps a file for as long as others that stand for it are used.
func (c *files) touch(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[f.key]; e != nil {
		c.order.MoveToFront(e)
	}
}

func (c *files) drop(e *list.Element) {
	f := c.order.Remove(e).(*File)
	delete(c.byKey, f.key)
	if c.first[f.kernel] == f {
		delete(c.first, f.kernel)
	}
	c.used.Add(budget.OfFiles, -fileBytes-len(f.path))
}

// dropUnused drops the files that no process maps and that have no rows.
func (c *files) dropUnused(r *rows) (dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Front(); e != nil; {
		next := e.Next()
		if f := e.Value.(*File); f.unused() && (f.first != nil || !r.loaded(f)) {
			c.drop(e)
			dropped++
		}
		e = next
	}
	return dropped
}

// unused reports whether no process maps a file, nor one with the same contents.
func (f *File) unused() bool { return f.users.Load()+f.others.Load() == 0 }

// forget drops a file, and the one that stands for it.
func (c *files) forget(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range []*File{f, f.origin()} {
		if e := c.byKey[f.key]; e != nil && e.Value.(*File) == f {
			c.drop(e)
		}
	}
}

func (c *files) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
