package symbol

import (
	"runtime"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
)

// maxOpenGo Go programs stay open within a batch besides those that are being read, with what was read
// of their tables last: up to half a megabyte each.
const maxOpenGo = 8

// goFile is a Go program that is open.
type goFile struct {
	Contents
	owner  Owner // by whose process
	name   string
	reader *gopclntab.Reader
	frames []gopclntab.Frame // scratch
	bytes  int               // counted in Cache.bytes; guarded by Cache.mu
}

// openGo opens a Go program.
func openGo(file Source, table gopclntab.Table) (*goFile, error) {
	contents, _, err := file.Open()
	if err != nil {
		return nil, err
	}
	return &goFile{Contents: contents, owner: file.Owner(), name: file.Path(), reader: gopclntab.NewReader(table, contents)}, nil
}

// toClose is open files of one owner that are to be closed, at most maxOpenGo. That may take for ever,
// and so it has a place among what is read: for an owner whose files do not close, nothing is opened any
// more when there are no places left.
type toClose struct {
	files []Contents // without what was read of them
	place *read
}

// keepOpen leaves the file of a program open that was just read, and returns what is to be closed for that;
// nil if nothing is.
func (c *Cache[K]) keepOpen(l *goLines) *toClose {
	f := l.file
	if f == nil {
		return nil
	}
	n := f.reader.Bytes()
	c.add(f.owner.UID, n-f.bytes)
	f.bytes = n
	if c.open = append(c.open, l); len(c.open) <= maxOpenGo {
		return nil
	}
	oldest := c.takeFile(c.open[0])
	c.open = slices.Delete(c.open, 0, 1)
	return c.closeLater(oldest)
}

// resume takes a program out of those that may be closed.
func (c *Cache[K]) resume(l *goLines) {
	if i := slices.Index(c.open, l); i >= 0 {
		c.open = slices.Delete(c.open, i, i+1)
	}
}

// takeFile takes the file of a program from it.
func (c *Cache[K]) takeFile(l *goLines) *goFile {
	f := l.file
	l.file = nil
	f.reader.Close()
	c.add(f.owner.UID, -f.bytes)
	return f
}

// closeLater takes a place for closing a file, and maybe others of its owner.
func (c *Cache[K]) closeLater(f *goFile) *toClose {
	return &toClose{[]Contents{f.Contents}, c.reading.add(f.owner, f.name)}
}

// finish closes files. Cache.mu must not be held.
func (c *Cache[K]) finish(w *toClose) {
	c.opts.work(w.place, func() {
		for _, f := range w.files {
			f.Close()
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.end(w.place)
}

// CloseFiles has the files closed that Lookup has left open. It is to be called when a batch of lookups
// is done, and does not wait for them.
func (c *Cache[K]) CloseFiles() {
	if c.closeFiles() {
		runtime.GC()
	}
}

// closeFiles reports whether Go's heap is to be collected.
func (c *Cache[K]) closeFiles() (collects bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.rest()
	c.naming.rest()
	c.batch++
	byPlace := map[place]*toClose{}
	for _, l := range c.open {
		f := c.takeFile(l)
		if w := byPlace[f.owner.place()]; w != nil {
			w.files = append(w.files, f.Contents)
			continue
		}
		byPlace[f.owner.place()] = c.closeLater(f)
	}
	clear(c.open)
	c.open = c.open[:0]
	for _, w := range byPlace {
		go c.finish(w)
	}
	return c.collects(c.opts.MaxBytes)
}
