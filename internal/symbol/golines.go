package symbol

import (
	"errors"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
)

const (
	// maxGoLineBytes bounds the functions of one program that are kept by address.
	maxGoLineBytes = 4 << 20
	// goLineBytes is what an address takes besides the strings of its functions.
	goLineBytes = 96
	frameBytes  = 64
)

// goLines is what was read of a Go program's table. Guarded by Cache.mu, but for what
// belongs to the goroutine that reads.
type goLines struct {
	byAddress map[uint64]goLine
	bytes     int
	// reading is closed when the goroutine that reads has ended; nil if none does.
	reading chan struct{}
	spent   time.Duration // on reading, since CloseFiles
	listed  bool          // in Cache.used

	// Of the goroutine that reads.
	file      Contents
	reader    *gopclntab.Reader
	frames    []gopclntab.Frame
	demangler demangler
}

// goLine is what is at an address.
type goLine struct {
	frames   []Frame
	language Language
}

// goFrames returns the functions at an address of a Go program. What is not known yet
// is read in a goroutine of its own, as a file may never answer. Until CloseFiles is
// called, at most a quarter of CacheOptions.Wait is spent on one file.
func (c *Cache[K]) goFrames(e *cached[K], file Source, vaddr uint64) ([]Frame, Language) {
	l := &e.lines
	c.mu.Lock()
	for {
		if known, ok := l.byAddress[vaddr]; ok {
			c.mu.Unlock()
			return known.frames, known.language
		}
		if l.spent >= c.fileWait() {
			c.stats.TimedOut++
			c.mu.Unlock()
			return nil, Native
		}
		mine := l.reading == nil
		if mine {
			one := c.begin(file)
			if one == nil {
				c.mu.Unlock()
				return nil, Native
			}
			l.reading = make(chan struct{})
			if !l.listed {
				l.listed = true
				c.used = append(c.used, e)
			}
			go c.readLines(e, file, vaddr, one)
		}
		done, left := l.reading, c.fileWait()-l.spent
		c.mu.Unlock()
		began := c.opts.Now()
		answered := c.wait(done, began.Add(left), file.Owner().UID)
		c.mu.Lock()
		if mine || !answered {
			l.spent += c.opts.Now().Sub(began)
		}
		if !answered {
			l.spent = c.fileWait()
			c.mu.Unlock()
			return nil, Native
		}
		if mine {
			known := l.byAddress[vaddr]
			c.mu.Unlock()
			return known.frames, known.language
		}
	}
}

// readLines reads one address, and enters what it finds.
func (c *Cache[K]) readLines(e *cached[K], file Source, vaddr uint64, one *read) {
	l := &e.lines
	var line goLine
	var err error
	c.opts.work(one, func() { line, err = l.read(file, e.known.golang, vaddr) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.end(one)
	var malformed *elffile.FormatError
	if err != nil {
		c.stats.Failures++
	}
	if err == nil || errors.As(err, &malformed) {
		c.keep(e, vaddr, line)
	} else {
		l.spent = c.fileWait() // not at once again
	}
	close(l.reading)
	l.reading = nil
}

// keep enters what is at an address.
func (c *Cache[K]) keep(e *cached[K], vaddr uint64, line goLine) {
	l := &e.lines
	if l.bytes > maxGoLineBytes || l.byAddress == nil {
		c.grow(e, -l.bytes)
		l.byAddress, l.bytes = map[uint64]goLine{}, 0
	}
	n := goLineBytes
	for _, f := range line.frames {
		n += frameBytes + len(f.Name) + len(f.File)
	}
	l.byAddress[vaddr] = line
	l.bytes += n
	c.grow(e, n)
	c.shrink()
}

// read reads one address. With an error, something of it may be known.
func (l *goLines) read(file Source, table gopclntab.Table, vaddr uint64) (goLine, error) {
	if l.reader == nil {
		contents, _, err := file.Open()
		if err != nil {
			return goLine{}, err
		}
		l.file, l.reader = contents, gopclntab.NewReader(table, contents)
	}
	var err error
	if l.frames, err = l.reader.Frames(l.frames[:0], vaddr); err != nil && len(l.frames) == 0 {
		return goLine{}, err
	}
	line := goLine{frames: make([]Frame, len(l.frames)), language: Go}
	for i, f := range l.frames {
		line.frames[i] = Frame{Name: f.Function, File: f.File, Line: f.Line, StartLine: f.StartLine}
		if f.Foreign {
			line.frames[i].Name, line.language = l.demangler.name(f.Function), Native
		}
	}
	return line, err
}

// CloseFiles closes the files that Lookup has left open. It is to be called when a
// batch of lookups is done.
func (c *Cache[K]) CloseFiles() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.rest()
	c.naming.rest()
	kept := c.used[:0]
	for _, e := range c.used {
		l := &e.lines
		if l.reading != nil {
			kept = append(kept, e) // it never answers, or is late
			continue
		}
		if l.file != nil {
			l.file.Close()
		}
		l.file, l.reader, l.frames, l.listed, l.spent = nil, nil, nil, false, 0
	}
	clear(c.used[len(kept):])
	c.used = kept
}
