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

const (
	// maxExpected addresses of a Go program are read together: a goroutine for each costs more than what it reads.
	maxExpected = 64
	// expectedBytes is more than what is at an address takes in most programs.
	expectedBytes = 512
)

// Expect has read what Lookup is going to be asked for next, where it is cheaper to read it together: the functions
// at addresses of a Go program. It waits as Lookup does, which tries again what was not read. The addresses are in
// ascending order.
func (c *Cache[K]) Expect(key K, file Source, vaddrs []uint64) {
	if !c.mayExpect(key, vaddrs) || c.opts.busy(file.Owner()) {
		return
	}
	e := c.file(cacheKey[K]{file: key}, file, nil)
	if e == nil || !e.known.isGo {
		return
	}
	c.makeRoom(e, vaddrs)
	for chunk := range slices.Chunk(vaddrs, maxExpected) {
		if c.readGo(e, file, chunk) != readAll {
			return
		}
	}
}

// mayExpect reports whether something at addresses of a file may be unknown that Expect reads.
func (c *Cache[K]) mayExpect(key K, vaddrs []uint64) bool {
	if len(vaddrs) == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.byKey[cacheKey[K]{file: key}]
	if element == nil {
		return true
	}
	e := element.Value.(*cached[K])
	if e.loading != nil {
		return true
	}
	return e.known != nil && e.known.isGo && len(e.unknown(vaddrs)) > 0
}

// makeRoom drops functions of a Go program that were read before where there is no room for what is not known of
// addresses: else keep would drop that before it is asked for.
func (c *Cache[K]) makeRoom(e *cached[K], vaddrs []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.lines.bytes+expectedBytes*len(e.unknown(vaddrs)) > maxGoLineBytes {
		c.dropLines(e)
	}
}

// dropLines forgets the functions of a Go program. Cache.mu is held.
func (c *Cache[K]) dropLines(e *cached[K]) {
	c.grow(e, -e.lines.bytes)
	e.lines.byAddress, e.lines.bytes = map[uint64]goLine{}, 0
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
		became := c.readGo(e, file, []uint64{vaddr})
		c.mu.Lock()
		switch became {
		case readLate:
			c.stats.TimedOut++
		case readRefused:
			c.stats.Refused++
		}
		known = l.byAddress[vaddr]
		c.mu.Unlock()
	}
	return known.frames, known.language
}

// became says what became of addresses that were to be read.
type became uint8

const (
	readAll        became = iota // they are read, as far as the file tells
	readLate                     // no time was left for the file
	readRefused                  // nothing may be read now
	readUnfinished               // the time was over, which is counted
)

// readGo reads what is not known yet of addresses of a Go program, in a goroutine of its own, as a file may
// never answer. Until CloseFiles is called, at most a quarter of CacheOptions.Wait is spent on one file.
func (c *Cache[K]) readGo(e *cached[K], file Source, vaddrs []uint64) became {
	l := &e.lines
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.batch != c.batch && l.reading == nil { // else it never answers, or is late
		l.batch, l.spent = c.batch, 0
	}
	for {
		unknown := e.unknown(vaddrs)
		if len(unknown) == 0 {
			return readAll
		}
		if l.spent >= c.fileWait() {
			return readLate
		}
		mine := l.reading == nil
		if mine && !c.beginLines(e, file, unknown) {
			return readRefused
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
			return readUnfinished
		}
		if mine {
			return readAll
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

// readLines reads addresses, and enters what it finds.
func (c *Cache[K]) readLines(e *cached[K], file Source, vaddrs []uint64, one *read) {
	c.opts.work(one, func() { c.linesAt(e, file, vaddrs) })
	if left := c.endLines(e, one); left != nil {
		c.finish(left)
	}
}

// linesAt reads addresses and enters each at once: who waits for all of them may not wait long enough.
func (c *Cache[K]) linesAt(e *cached[K], file Source, vaddrs []uint64) {
	for _, vaddr := range vaddrs {
		line, err := e.lines.read(file, e.known.golang, vaddr)
		if !c.enterLine(e, vaddr, line, err) || c.reading.closed.Load() {
			return
		}
	}
}

// enterLine enters what was found at an address, and reports whether more of the file is to be read.
func (c *Cache[K]) enterLine(e *cached[K], vaddr uint64, line goLine, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.stats.Failures++
	}
	var malformed *elffile.FormatError
	if err != nil && !errors.As(err, &malformed) {
		e.lines.spent, e.lines.batch = c.fileWait(), c.batch // not at once again
		return false
	}
	c.keep(e, vaddr, line)
	return true
}

// endLines returns what is to be closed when addresses have been read.
func (c *Cache[K]) endLines(e *cached[K], one *read) *toClose {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.end(one)
	left := c.keepOpen(&e.lines)
	close(e.lines.reading)
	e.lines.reading = nil
	return left
}

// keep enters what is at an address.
func (c *Cache[K]) keep(e *cached[K], vaddr uint64, line goLine) {
	l := &e.lines
	if l.bytes > maxGoLineBytes || l.byAddress == nil {
		c.dropLines(e)
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
