//go:build linux

package process

import (
	"container/list"
	"strings"
	"sync"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// files caches what is known of files, the most recently mapped ones.
type files struct {
	opts *fileOptions
	max  int

	mu    sync.Mutex
	order *list.List // of *File
	byKey map[procfs.FileID]*list.Element
}

func newFiles(opts *fileOptions, max int) *files {
	return &files{opts: opts, max: max, order: list.New(), byKey: map[procfs.FileID]*list.Element{}}
}

// of returns the file behind a mapping, read as far as it could be.
func (c *files) of(pid int, m procfs.Mapping) (*File, error) {
	key, err := c.opts.fs.StatMapped(pid, m)
	if err != nil {
		return nil, err
	}
	f := c.file(key, m.Path)
	f.place.Store(&place{pid, m})
	f.load()
	if f.err != nil && f.facts.htlHash == "" {
		// It could not be read at all. The next process may have more luck.
		c.forget(f)
		return nil, f.err
	}
	return f, nil
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
	for c.order.Len() > c.max {
		oldest := c.order.Remove(c.order.Back()).(*File)
		delete(c.byKey, oldest.key)
	}
	return f
}

func (c *files) forget(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[f.key]; e != nil && e.Value.(*File) == f {
		c.order.Remove(e)
		delete(c.byKey, f.key)
	}
}

func (c *files) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
