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
	spent   time.Duration // on reading, in a batch
	batch   uint64        // that one

	// Of the goroutine that reads, if one does.
	file      *goFile // nil if it is not open
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
	if l.batch != c.batch && l.reading == nil { // else it never answers, or is late
		l.batch, l.spent = c.batch, 0
	}
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
		if mine && !c.beginLines(e, file, vaddr) {
			c.mu.Unlock()
			return nil, Native
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

// beginLines begins to read an address, if that may be.
func (c *Cache[K]) beginLines(e *cached[K], file Source, vaddr uint64) bool {
	one := c.begin(file)
	if one == nil {
		return false
	}
	c.resume(&e.lines)
	e.lines.reading = make(chan struct{})
	go c.readLines(e, file, vaddr, one)
	return true
}

// readLines reads one address, and enters what it finds.
func (c *Cache[K]) readLines(e *cached[K], file Source, vaddr uint64, one *read) {
	var line goLine
	var err error
	c.opts.work(one, func() { line, err = e.lines.read(file, e.known.golang, vaddr) })
	if left := c.endLines(e, vaddr, line, err, one); left != nil {
		c.finish(left)
	}
}

// endLines enters what was found at an address, and returns what is to be closed then.
func (c *Cache[K]) endLines(e *cached[K], vaddr uint64, line goLine, err error, one *read) *toClose {
	l := &e.lines
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.end(one)
	left := c.keepOpen(l)
	var malformed *elffile.FormatError
	if err != nil {
		c.stats.Failures++
	}
	if err == nil || errors.As(err, &malformed) {
		c.keep(e, vaddr, line)
	} else {
		l.spent, l.batch = c.fileWait(), c.batch // not at once again
	}
	close(l.reading)
	l.reading = nil
	return left
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
	if l.file == nil {
		opened, err := openGo(file, table)
		if err != nil {
			return goLine{}, err
		}
		l.file = opened
	}
	frames, err := l.file.reader.Frames(l.file.frames[:0], vaddr)
	defer clear(frames) // their names, which may be long
	l.file.frames = frames
	if err != nil && len(frames) == 0 {
		return goLine{}, err
	}
	line := goLine{frames: make([]Frame, len(frames)), language: Go}
	for i, f := range frames {
		line.frames[i] = Frame{Name: f.Function, File: f.File, Line: f.Line, StartLine: f.StartLine}
		if f.Foreign {
			line.frames[i].Name, line.language = l.demangler.name(f.Function), Native
		}
	}
	return line, err
}
