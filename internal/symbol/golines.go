package symbol

import (
	"errors"
	"slices"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
)

// goLines is what was read of a Go program's table. Guarded by Cache.mu, but for what
// belongs to the goroutine that reads.
type goLines struct {
	lineSet
	turns lineTurns
	// reading is closed when the goroutine that reads has ended; nil if none does.
	reading chan struct{}

	// Of the goroutine that reads, if one does.
	file      *goFile // nil if it is not open
	demangler demangler
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
// addresses: else keep would drop that before it is asked for. Half of the room is as much as is made: a user who
// asks for more drops his own.
func (c *Cache[K]) makeRoom(e *cached[K], vaddrs []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	expected := min(expectedBytes*len(e.unknown(vaddrs)), maxGoLineBytes/userShare)
	c.grow(e, -e.lines.makeRoom(expected))
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
// never answer. Until CloseFiles is called, at most a quarter of CacheOptions.Wait is spent on one file, and half
// of that for one user.
func (c *Cache[K]) readGo(e *cached[K], file Source, vaddrs []uint64) became {
	l, owner := &e.lines, file.Owner()
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.reading == nil { // else it never answers, or is late
		l.turns.begin(c.batch)
	}
	for {
		unknown := e.unknown(vaddrs)
		if len(unknown) == 0 {
			return readAll
		}
		left := c.reading.left(owner.UID, l.turns.left(owner, c.fileWait()))
		if left <= 0 {
			return readLate
		}
		began := c.opts.Now()
		until := began.Add(left)
		mine := l.reading == nil
		if mine && !c.beginLines(e, file, unknown, until) {
			return readRefused
		}
		done := l.reading
		c.mu.Unlock()
		answered := c.wait(done, until, owner.UID)
		c.mu.Lock()
		if mine || !answered {
			l.turns.spend(owner.UID, c.opts.Now().Sub(began))
		}
		if !answered {
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
func (c *Cache[K]) beginLines(e *cached[K], file Source, vaddrs []uint64, until time.Time) bool {
	one := c.begin(file)
	if one == nil {
		return false
	}
	c.resume(&e.lines)
	e.lines.reading = make(chan struct{})
	go c.readLines(e, file, vaddrs, until, one)
	return true
}

// readLines reads addresses, and enters what it finds.
func (c *Cache[K]) readLines(e *cached[K], file Source, vaddrs []uint64, until time.Time, one *read) {
	c.opts.work(one, func() { c.linesAt(e, file, vaddrs, until, one) })
	if left := c.endLines(e, one); left != nil {
		c.finish(left)
	}
}

// linesAt reads addresses and enters each at once: who waits for all of them may not wait long enough. What is left
// then is not read: others may wait for the file.
func (c *Cache[K]) linesAt(e *cached[K], file Source, vaddrs []uint64, until time.Time, one *read) {
	for _, vaddr := range vaddrs {
		if c.reading.turn(one, &c.mu) != nil {
			c.mu.Lock()
			c.stats.Refused++
			c.mu.Unlock()
			return
		}
		line, err := c.lineAt(e, file, vaddr)
		if isFault(err) || !c.enterLine(e, vaddr, line, err, until) || c.reading.closed.Load() {
			return
		}
	}
}

// lineAt reads one address. With an error, something of it may be known.
func (c *Cache[K]) lineAt(e *cached[K], file Source, vaddr uint64) (goLine, error) {
	for {
		line, err := e.lines.read(file, e.known.golang, vaddr)
		if !isFault(err) || !c.fault(&e.lines, file.Owner()) {
			return line, err
		}
	}
}

// isFault reports whether an error is that a file could not be opened or read: what it says is the same for all,
// that it cannot be read may hold for one owner.
func isFault(err error) bool {
	var malformed *elffile.FormatError
	return err != nil && !errors.As(err, &malformed)
}

// fault notes that a Go program could not be read, and closes it. It reports whether it was open for another owner
// than the one who asks: then it may be read through his processes.
func (c *Cache[K]) fault(l *goLines, by Owner) (others bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Failures++
	of := by.place()
	if l.file != nil {
		of = l.file.owner.place()
		go c.finish(c.closeLater(c.takeFile(l)))
	}
	l.turns.begin(c.batch) // the file may have been late
	l.turns.fail(of)
	return of != by.place()
}

// enterLine enters what was found at an address, and reports whether more is to be read.
func (c *Cache[K]) enterLine(e *cached[K], vaddr uint64, line goLine, err error, until time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.stats.Failures++
	}
	c.keep(e, vaddr, line)
	return c.opts.Now().Before(until)
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
	n := line.bytes()
	dropped := e.lines.makeRoom(n)
	e.lines.add(vaddr, line)
	c.grow(e, n-dropped)
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
	line := goLine{uid: file.Owner().UID}
	if err != nil && len(frames) == 0 {
		return line, err
	}
	line.frames, line.language = make([]Frame, len(frames)), Go
	for i, f := range frames {
		line.frames[i] = Frame{Name: f.Function, File: f.File, Line: f.Line, StartLine: f.StartLine}
		if f.Foreign {
			line.frames[i].Name, line.language = l.demangler.name(f.Function), Native
		}
	}
	return line, err
}
