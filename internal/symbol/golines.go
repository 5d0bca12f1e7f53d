package symbol

import (
	"errors"
	"slices"
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

// Addresses of a Go program are read together, up to maxExpected, and until what is at them takes
// maxExpectedBytes: a goroutine for each costs more than what it reads.
const (
	maxExpected      = 64
	maxExpectedBytes = 256 << 10
)

// Expect has read what Lookup is going to be asked for, where it is cheaper to read it together: the functions
// at addresses of a Go program. It waits as Lookup does. The addresses are in ascending order.
func (c *Cache[K]) Expect(key K, file Source, vaddrs []uint64) {
	if len(vaddrs) == 0 {
		return
	}
	e := c.file(cacheKey[K]{file: key}, file, nil)
	if e == nil || !e.known.isGo {
		return
	}
	for chunk := range slices.Chunk(vaddrs, maxExpected) {
		if c.opts.busy(file.Owner()) {
			return // Lookup counts what is refused
		}
		c.readGo(e, file, chunk)
	}
}

// bytes returns the memory that a line takes, roughly.
func (l *goLine) bytes() int {
	n := goLineBytes
	for _, f := range l.frames {
		n += frameBytes + len(f.Name) + len(f.File)
	}
	return n
}

// goFrames returns the functions at an address of a Go program.
func (c *Cache[K]) goFrames(e *cached[K], file Source, vaddr uint64) ([]Frame, Language) {
	l := &e.lines
	c.mu.Lock()
	known, ok := l.byAddress[vaddr]
	c.mu.Unlock()
	if !ok {
		late := c.readGo(e, file, []uint64{vaddr})
		c.mu.Lock()
		if late {
			c.stats.TimedOut++
		}
		known = l.byAddress[vaddr]
		c.mu.Unlock()
	}
	return known.frames, known.language
}

// readGo reads what is not known yet of addresses of a Go program, in a goroutine of its own, as a file may
// never answer. Until CloseFiles is called, at most a quarter of CacheOptions.Wait is spent on one file; late
// says that nothing was left of it.
func (c *Cache[K]) readGo(e *cached[K], file Source, vaddrs []uint64) (late bool) {
	l := &e.lines
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.batch != c.batch && l.reading == nil { // else it never answers, or is late
		l.batch, l.spent = c.batch, 0
	}
	for {
		unknown := e.unknown(vaddrs)
		if len(unknown) == 0 {
			return false
		}
		if l.spent >= c.fileWait() {
			return true
		}
		mine := l.reading == nil
		if mine && !c.beginLines(e, file, unknown) {
			return false
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
			return false // wait has counted that
		}
		if mine {
			return false
		}
	}
}

// unknown returns the addresses in Go's table of which nothing is known. Cache.mu is held.
func (e *cached[K]) unknown(vaddrs []uint64) (unknown []uint64) {
	for _, vaddr := range vaddrs {
		if _, ok := e.lines.byAddress[vaddr]; !ok && e.known.golang.Contains(vaddr) {
			unknown = append(unknown, vaddr)
		}
	}
	return unknown
}

// beginLines begins to read addresses, if that may be.
func (c *Cache[K]) beginLines(e *cached[K], file Source, vaddrs []uint64) bool {
	one := c.begin(file)
	if one == nil {
		return false
	}
	c.resume(&e.lines)
	e.lines.reading = make(chan struct{})
	go c.readLines(e, file, vaddrs, one)
	return true
}

// goRead is what was read at an address.
type goRead struct {
	goLine
	vaddr uint64
	err   error
}

// fatal reports whether the file is not to be read any more for now.
func (r *goRead) fatal() bool {
	var malformed *elffile.FormatError
	return r.err != nil && !errors.As(r.err, &malformed)
}

// readLines reads addresses, and enters what it finds.
func (c *Cache[K]) readLines(e *cached[K], file Source, vaddrs []uint64, one *read) {
	var lines []goRead
	c.opts.work(one, func() { lines = c.linesAt(e, file, vaddrs) })
	if left := c.endLines(e, lines, one); left != nil {
		c.finish(left)
	}
}

// linesAt reads addresses, or some of them.
func (c *Cache[K]) linesAt(e *cached[K], file Source, vaddrs []uint64) []goRead {
	lines := make([]goRead, 0, len(vaddrs))
	for bytes := 0; len(lines) < len(vaddrs) && bytes < c.opts.expectedBytes && !c.reading.closed.Load(); {
		r := goRead{vaddr: vaddrs[len(lines)]}
		r.goLine, r.err = e.lines.read(file, e.known.golang, r.vaddr)
		lines = append(lines, r)
		if r.fatal() {
			break
		}
		bytes += r.bytes()
	}
	return lines
}

// endLines enters what was found at addresses, and returns what is to be closed then.
func (c *Cache[K]) endLines(e *cached[K], lines []goRead, one *read) *toClose {
	l := &e.lines
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.end(one)
	left := c.keepOpen(l)
	for i := range lines {
		r := &lines[i]
		if r.err != nil {
			c.stats.Failures++
		}
		if r.fatal() {
			l.spent, l.batch = c.fileWait(), c.batch // not at once again
			continue
		}
		c.keep(e, r.vaddr, r.goLine)
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
	n := line.bytes()
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
