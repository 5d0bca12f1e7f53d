package symbol

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// CacheOptions bound a Cache. Zero values stand for the defaults.
type CacheOptions struct {
	MaxBytes      int           // of all files' functions; half of it for one file
	MaxTableBytes int           // of the symbols of one file, before their names are compressed
	Wait          time.Duration // for files to be read, of all lookups of a batch together
	Idle          time.Duration // after which what was not used gives way first, whoever it was read for
	Now           func() time.Time
	// Busy reports whether nothing is to be read for a user for now, Work runs what reads or
	// demangles for one. Both may be nil.
	Busy func(uid uint32) bool
	Work func(uid uint32, do func())
	// Pace begins the reading of a file by this thread; what it returns is for elffile.File.Pace.
	// It may be nil.
	Pace func() (step func() error)

	blocked    func(thread int) bool // procfs.Blocked
	threadTime func() time.Duration
}

const (
	defaultMaxBytes      = 64 << 20
	defaultMaxTableBytes = 32 << 20
	defaultWait          = 2 * time.Second
	defaultIdle          = 5 * time.Minute
	// retryAfter is when a file is tried again that could not be read.
	retryAfter = time.Minute
	// maxRefusals owners are remembered for whom a file could not be read.
	maxRefusals = 64
	// maxGone processes of an owner have a file tried again at once, as the last one has gone.
	maxGone = 8
	// minTableBytes is what a file counts for besides its functions and strings, and a failure:
	// mostly that a container has no debug file for a file.
	minTableBytes = 1<<10 + 64
	// refusalBytes is what such an owner takes.
	refusalBytes = 256
)

var errBusy = errors.New("too many files are being read")

// Cache holds what is known of the functions of files, those used last. K identifies
// the contents of a file. Its methods may be called from everywhere.
type Cache[K comparable] struct {
	opts   CacheOptions
	packed *room // of .gnu_debugdata
	tables *room // of symbols, while they are read

	mu    sync.Mutex
	held  // *cached[K], and what is open of Go programs
	byKey map[cacheKey[K]]*list.Element
	open  []*goLines // that are not being read now, the most recently used last
	batch uint64

	reading reading
	naming  naming
	stats   CacheStats
}

// cacheKey is a file, or the debug file that a container has for it.
type cacheKey[K comparable] struct {
	file  K
	home  home // of the debug file
	debug bool
}

// cached is what is known of a file, or a file that is being read.
type cached[K comparable] struct {
	holding
	key      cacheKey[K]
	deadline time.Time     // until when callers wait
	done     chan struct{} // closed when the rest is set
	loading  *read         // until then; guarded by Cache.mu
	known    *functions    // nil if the file could not be read
	before   *cached[K]    // what was known in part, until done is closed; guarded by Cache.mu
	behind   []*cached[K]  // that are still being read for other users; guarded by Cache.mu
	failedAt time.Time     // when something was missing; guarded by Cache.mu, once done is closed
	// refusals are of owners whose processes could not open the file, and of users who had no room
	// for it: who no longer maps it, says so only, or has used up his room takes its functions from
	// no other owner. Guarded by Cache.mu.
	refusals map[refused]refusal
	lines    goLines // if known.isGo
}

// refused is for whom a file could not be read.
type refused struct {
	place
	room bool // there was no room, which is the user's: place has no container
}

func refusedRoom(uid uint32) refused { return refused{place{uid: uid}, true} }

// refusal is that a file could not be read for an owner.
type refusal struct {
	at   time.Time
	gone []int // processes that had gone, if all had
}

// CacheStats counts what a cache has done and what it holds.
type CacheStats struct {
	Files, Bytes int
	Loads        uint64 // files that were read
	Failures     uint64 // files that could not be read, or not in whole
	Truncated    uint64 // files with more functions than are kept
	TimedOut     uint64 // lookups that gave up waiting for a file, or for which no time was left to demangle a name
	Refused      uint64 // lookups for which too many files were being read
	Hanging      int    // files that are being read, for long
}

// NewCache makes an empty cache.
func NewCache[K comparable](opts CacheOptions) *Cache[K] {
	opts.setDefaults()
	c := &Cache[K]{
		opts: opts, packed: newRoom(packedLimits()), tables: newRoom(tableLimits()),
		held: newHeld(), byKey: map[cacheKey[K]]*list.Element{}, batch: 1,
	}
	c.reading = newReading(&c.opts)
	c.naming = naming{opts: &c.opts, spentOf: map[uint32]time.Duration{}}
	return c
}

// Stop lets nothing more be read: lookups find what is known already, and wait for nothing. It may be called
// while they wait.
func (c *Cache[K]) Stop() { c.reading.stop(&c.mu) }

// Close ends what is being read, as Stop does, and waits for that until ctx ends; a file that hangs is left
// behind then, with an error.
func (c *Cache[K]) Close(ctx context.Context) error { return c.reading.close(ctx, &c.mu) }

func (opts *CacheOptions) setDefaults() {
	if opts.MaxBytes == 0 {
		opts.MaxBytes = defaultMaxBytes
	}
	if opts.MaxTableBytes == 0 {
		opts.MaxTableBytes = defaultMaxTableBytes
	}
	// More than all may take is not read, since at most a share of that is kept of one file.
	opts.MaxTableBytes = min(opts.MaxTableBytes, opts.MaxBytes)
	if opts.Wait == 0 {
		opts.Wait = defaultWait
	}
	if opts.Idle == 0 {
		opts.Idle = defaultIdle
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.blocked == nil {
		opts.blocked = procfs.Blocked
	}
	if opts.threadTime == nil {
		opts.threadTime = threadTime
	}
}

// idleSince is since when what is idle was not used.
func (opts *CacheOptions) idleSince() time.Time { return opts.Now().Add(-opts.Idle) }

// Hurry has lookups wait for nothing that is read, those that wait already too, or, when there is time again, as
// long as they may.
func (c *Cache[K]) Hurry(hurried bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.hurry(hurried)
}

// Lookup appends the functions that hold a virtual address of a file, the innermost
// first, and says what they were written in. When the file is not known yet, it is
// opened and read. Until CloseFiles is called, lookups together wait at most
// CacheOptions.Wait for what is read, whatever the number of files, half of it for files of
// one user and a quarter for one file (for the lines of a Go program half of that for one user),
// and then give up. A file that never answers is not opened again until it does. A name for
// which there is no time left to demangle it (maxNaming) stays mangled until the next batch.
//
// A Go program's own table stays in the file. The files that were read for it last, maxOpenGo of
// them, stay open until CloseFiles is called.
//
// What the file itself says, and a debug file of the host, holds for all who ask with the
// same key; a debug file that is found in the TargetRoot holds for who has the same user,
// container and cgroup.
func (c *Cache[K]) Lookup(to []Frame, key K, file Source, vaddr uint64) ([]Frame, Language) {
	e := c.file(cacheKey[K]{file: key}, file, nil)
	if e == nil {
		return to, Native
	}
	if e.known.isGo && e.known.golang.Contains(vaddr) {
		frames, language := c.goFrames(e, file, vaddr)
		return append(to, frames...), language
	}
	names := namer{&c.naming, file.Owner().UID}
	if e.known.debug != nil {
		debug := c.file(cacheKey[K]{key, file.Owner().home(), true}, file, e.known)
		if debug != nil {
			if name, ok := c.function(debug, vaddr, names); ok {
				return append(to, Frame{Name: name}), Native
			}
		}
	}
	if name, ok := c.function(e, vaddr, names); ok {
		return append(to, Frame{Name: name}), Native
	}
	return to, Native
}

// function returns the name of the function of a file's symbols that holds an address.
func (c *Cache[K]) function(e *cached[K], vaddr uint64, names namer) (string, bool) {
	name, more, ok := e.known.table.lookup(vaddr, names)
	if more != 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.grow(e, more)
		c.shrink()
	}
	return name, ok
}

// Stats returns the counts as of now.
func (c *Cache[K]) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Files, s.Bytes, s.Hanging = c.order.Len(), c.bytes, c.reading.hanging()
	s.TimedOut += c.naming.lateNames()
	return s
}

// file returns what is known of a file, or, if of is not nil, of its debug file; or nil.
func (c *Cache[K]) file(key cacheKey[K], file Source, of *functions) *cached[K] {
	var before *cached[K]
	for {
		e, err := c.entry(key, file, of)
		if err != nil || e == before {
			return nil
		}
		select {
		case <-e.done:
		default:
			if !c.wait(e.done, e.deadline, file.Owner().UID) {
				return c.knownBefore(e)
			}
		}
		if e.known != nil {
			return e
		}
		before = e // if it was not opened through another owner's process, it stays so
	}
}

// knownBefore returns what is known of a file while it is read again; nil if nothing is.
func (c *Cache[K]) knownBefore(e *cached[K]) *cached[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.before
}

// wait waits for done to be closed, until a deadline, for what is left of
// CacheOptions.Wait and until Hurry or Stop, and counts when it gives up.
func (c *Cache[K]) wait(done <-chan struct{}, deadline time.Time, uid uint32) bool {
	began := c.opts.Now()
	c.mu.Lock()
	left, over := c.reading.left(uid, deadline.Sub(began)), c.reading.over
	c.mu.Unlock()
	timer := time.NewTimer(left)
	defer timer.Stop()
	answered := true
	select {
	case <-done:
	case <-timer.C:
		answered = false
	case <-over:
		answered = false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.spend(uid, c.opts.Now().Sub(began))
	if !answered {
		c.stats.TimedOut++
	}
	return answered
}

// fileWait is how long lookups wait for one file: a few that hang leave time for others.
func (c *Cache[K]) fileWait() time.Duration { return c.opts.Wait / waitShare }

// entry returns the entry of a file, perhaps one that is just being filled.
func (c *Cache[K]) entry(key cacheKey[K], file Source, of *functions) (*cached[K], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opts.Now()
	var last *cached[K]
	element := c.byKey[key]
	if element != nil {
		last = element.Value.(*cached[K])
		if !last.mayRetry(file.Owner(), now) && !c.late(last, file.Owner().UID) {
			c.use(element, now)
			return last, nil
		}
	}
	one := c.begin(file)
	if one == nil {
		c.stats.Refused++
		if last != nil && (last.known != nil || last.loading != nil) {
			c.use(element, now)
			return last, nil
		}
		return nil, errBusy
	}
	c.stats.Loads++
	e := &cached[K]{
		holding: holding{uid: file.Owner().UID, used: now}, key: key,
		deadline: now.Add(c.fileWait()), done: make(chan struct{}), loading: one,
	}
	if last != nil {
		c.drop(element)
		e.replace(last)
	}
	e.bytes = e.size()
	c.byKey[key] = c.order.PushFront(e)
	c.add(e.uid, e.bytes)
	go c.load(e, file, of)
	return e, nil
}

// mayRetry reports whether a file that could not be read is to be read again.
func (e *cached[K]) mayRetry(by Owner, now time.Time) bool {
	failedAt := e.failedAt
	if failedAt.IsZero() || e.lines.reading != nil || e.isBehind(by.UID) {
		return false // known, or being read
	}
	if e.refusals != nil {
		if now.Sub(e.refusals[refusedRoom(by.UID)].at) < retryAfter {
			return false
		}
		r := e.refusals[refused{place: by.place()}] // zero, long ago, if it was not tried
		if n := len(r.gone); n > 0 && n < maxGone && !slices.Contains(r.gone, by.PID) {
			return true
		}
		failedAt = r.at
	}
	return now.Sub(failedAt) >= retryAfter
}

// fail notes that a file could not be read, or not in whole, and for whom.
func (e *cached[K]) fail(by Owner, err error, now time.Time) {
	e.failedAt = now
	of := refused{place: by.place()}
	if errors.Is(err, errNoRoom) {
		of = refusedRoom(by.UID)
	} else if _, ok := err.(openError); !ok { //nolint:errorlint // as load returns it
		e.refusals = nil // its contents are the same for all
		return
	}
	r := refusal{at: now}
	last, known := e.refusals[of]
	if errors.Is(err, procfs.ErrNoProcess) {
		if now.Sub(last.at) < retryAfter {
			r.gone = last.gone
		}
		r.gone = append(r.gone, by.PID)
	}
	if e.refusals == nil || len(e.refusals) == maxRefusals && !known {
		e.refusals = map[refused]refusal{}
	}
	e.refusals[of] = r
}

// begin takes a place for reading a file; nil if there is none.
func (c *Cache[K]) begin(file Source) (one *read) {
	if c.opts.busy(file.Owner()) {
		return nil
	}
	return c.reading.begin(file.Owner(), file.Path())
}

// load fills an entry.
func (c *Cache[K]) load(e *cached[K], file Source, of *functions) {
	l := loader{
		src: file, maxBytes: c.opts.MaxTableBytes, maxKept: c.opts.MaxBytes / userShare,
		packed: c.packed, tables: c.tables, of: of, closed: c.reading.closed,
	}
	one := e.loading
	l.turn = func() error { return c.reading.turn(one, &c.mu) }
	var known *functions
	var err error
	c.opts.work(one, func() {
		if err = l.begin(); err != nil {
			return
		}
		if c.opts.Pace != nil {
			l.pace = c.opts.Pace()
		}
		known, err = l.load()
	})
	refused := l.refused != nil
	if refused {
		known, err = nil, l.refused
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.end(one)
	e.loading = nil
	switch {
	case refused:
		c.stats.Refused++
	case err != nil && !(of != nil && errors.Is(err, procfs.ErrNoProcess)): // that its process has gone is no failure
		c.stats.Failures++
	}
	if c.endBehind(e, known) {
		return
	}
	keeps := e.before != nil && (known == nil || err != nil && known.less(e.before.known))
	if keeps {
		known = e.before.known // it stays as it was
		last := &e.before.lines
		e.lines.lineSet = last.lineSet
		last.lineSet = lineSet{} // what is still being read for it enters a set of its own
	} else if e.before != nil {
		c.freed += e.before.outside()
	}
	e.known, e.before = known, nil
	switch {
	case refused:
		e.failedAt = c.opts.Now().Add(-retryAfter) // it is read when it is asked for again
	case known == nil || keeps || errors.Is(err, errNoRoom):
		e.fail(file.Owner(), err, c.opts.Now()) // it is read again, and counts until then as it is
	default:
		e.refusals = nil
	}
	if known != nil && known.table.Truncated() {
		c.stats.Truncated++
	}
	c.grow(e, e.size()-e.bytes)
	close(e.done)
	c.shrink()
}

// size returns the memory that an entry takes, roughly.
func (e *cached[K]) size() int {
	if e.before != nil {
		return e.before.size()
	}
	n := minTableBytes + len(e.key.home.container) + len(e.key.home.cgroup) + len(e.refusals)*refusalBytes + e.lines.bytes
	if e.known != nil {
		n += e.known.table.Bytes()
	}
	return n
}

// grow counts more bytes for an entry, unless it was dropped meanwhile. One that is being read again
// counts with the entry that takes its place.
func (c *Cache[K]) grow(e *cached[K], n int) {
	element := c.byKey[e.key]
	if element == nil {
		return
	}
	if now := element.Value.(*cached[K]); now == e || now.before == e {
		now.bytes += n
		c.add(now.uid, n)
	}
}

// beingRead implements holder.
func (e *cached[K]) beingRead() bool {
	return e.loading != nil || e.lines.reading != nil || len(e.behind) > 0
}

// trim implements holder.
func (e *cached[K]) trim() int {
	if e.known == nil {
		return 0
	}
	return e.known.table.forget()
}

// shrink drops files, if there is too much.
func (c *Cache[K]) shrink() { c.shrinkTo(c.opts.MaxBytes) }

func (c *Cache[K]) shrinkTo(bytes int) { c.held.shrinkTo(bytes, c.opts.idleSince(), c.drop) }

func (c *Cache[K]) drop(element *list.Element) {
	e := c.order.Remove(element).(*cached[K])
	delete(c.byKey, e.key)
	c.add(e.uid, -e.bytes)
}
