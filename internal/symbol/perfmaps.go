package symbol

import (
	"container/list"
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// MapSource opens the perf map of a process; whoever calls it closes the file. An
// error that is os.ErrNotExist or procfs.ErrNoProcess stands for none.
type MapSource interface {
	OpenMap() (MapFile, error)
	// Owner tells who the process is; it reads nothing.
	Owner() Owner
}

// PerfMaps holds the perf maps of processes, those used last. K identifies a process.
// Its methods may be called from everywhere.
type PerfMaps[K comparable] struct {
	opts CacheOptions

	mu    sync.Mutex
	held  // *mapped[K]
	byKey map[K]*list.Element
	batch uint64
	stats CacheStats

	reading reading
	room    *room
}

// mapped is the perf map of a process, or that there is none. Guarded by PerfMaps.mu.
type mapped[K comparable] struct {
	holding
	key     K
	current *perfMap      // never nil; it does not change
	batch   uint64        // when it was looked at last
	reading chan struct{} // closed when the goroutine that looks at it has ended; nil if none does
}

// NewPerfMaps makes an empty cache. A map has half of MaxBytes, and at most maxMapBytes; MaxTableBytes is not used.
func NewPerfMaps[K comparable](opts CacheOptions) *PerfMaps[K] {
	opts.setDefaults()
	c := &PerfMaps[K]{opts: opts, held: newHeld(), byKey: map[K]*list.Element{}, batch: 1, room: newRoom(mapLimits())}
	c.reading = newReading(&c.opts)
	return c
}

// Lookup appends the function that a process has written down for an address, and
// says what it was written in; otherwise, where the map does not tell. The map is
// looked at once after each Refresh, in a goroutine of its own; after that, all
// lookups together wait at most CacheOptions.Wait, half of it for maps of one user and a
// quarter for one map.
func (c *PerfMaps[K]) Lookup(to []Frame, key K, src MapSource, addr uint64, otherwise Language) ([]Frame, Language) {
	c.mu.Lock()
	e := c.entry(key, src)
	if e.batch != c.batch && c.start(e, src) {
		c.wait(e.reading, src.Owner().UID)
	}
	current := e.current
	c.mu.Unlock()
	return current.lookup(to, addr, otherwise)
}

// Refresh makes the next lookups look at the maps again. It is to be called between
// batches of lookups.
func (c *PerfMaps[K]) Refresh() {
	c.mu.Lock()
	c.batch++
	c.reading.rest()
	collects := c.collects(c.opts.MaxBytes)
	c.mu.Unlock()
	if collects {
		runtime.GC()
	}
}

// Hurry is for perf maps what it is for files.
func (c *PerfMaps[K]) Hurry(hurried bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.hurry(hurried)
}

// Stop is for perf maps what it is for files.
func (c *PerfMaps[K]) Stop() { c.reading.stop(&c.mu) }

// Close lets nothing more be read, and waits for what is until ctx ends; a map that hangs is
// left behind then, with an error.
func (c *PerfMaps[K]) Close(ctx context.Context) error { return c.reading.close(ctx, &c.mu) }

// Stats returns the counts as of now.
func (c *PerfMaps[K]) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Files, s.Bytes, s.Hanging = c.order.Len(), c.bytes, c.reading.hanging()
	return s
}

func (c *PerfMaps[K]) entry(key K, src MapSource) *mapped[K] {
	now := c.opts.Now()
	if element := c.byKey[key]; element != nil {
		c.use(element, now)
		return element.Value.(*mapped[K])
	}
	e := &mapped[K]{
		holding: holding{uid: src.Owner().UID, used: now}, key: key,
		current: newPerfMap(min(maxMapBytes, c.opts.MaxBytes/userShare)),
	}
	c.byKey[key] = c.order.PushFront(e)
	c.count(e, minTableBytes)
	c.shrink()
	return e
}

// start begins to look at a map, unless that is still going on.
func (c *PerfMaps[K]) start(e *mapped[K], src MapSource) bool {
	e.batch = c.batch
	if e.reading != nil {
		c.stats.TimedOut++
		return false
	}
	var one *read
	if !c.opts.busy(src.Owner()) {
		one = c.reading.begin(src.Owner(), "perf map")
	}
	if one == nil {
		c.stats.Refused++
		return false
	}
	e.reading = make(chan struct{})
	go c.look(e, src, e.current, one)
	return true
}

// wait waits for done to be closed, Hurry or Stop. It lets go of the lock meanwhile.
func (c *PerfMaps[K]) wait(done <-chan struct{}, uid uint32) {
	left, over := c.reading.left(uid, c.opts.Wait/waitShare), c.reading.over
	if left <= 0 {
		c.stats.TimedOut++
		return
	}
	c.mu.Unlock()
	began := time.Now()
	timer := time.NewTimer(left)
	answered := false
	select {
	case <-done:
		answered = true
	case <-timer.C:
	case <-over:
	}
	timer.Stop()
	c.mu.Lock()
	c.reading.spend(uid, time.Since(began))
	if !answered {
		c.stats.TimedOut++
	}
}

// look reads what is new in a map.
func (c *PerfMaps[K]) look(e *mapped[K], src MapSource, before *perfMap, one *read) {
	after := before
	var err error
	c.opts.work(one, func() {
		if err = c.reading.turn(one, &c.mu); err == nil {
			after, err = c.read(src, before)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading.end(one)
	close(e.reading)
	e.reading = nil
	if errors.Is(err, errBusy) {
		c.stats.Refused++
	} else if err != nil {
		c.stats.Failures++
	}
	if after == before {
		return
	}
	c.stats.Loads++
	if after.late {
		c.stats.Refused++
	}
	if before.complete && !after.complete {
		c.stats.Truncated++
	}
	c.freed += outside(before.functions.bytes())
	e.current = after
	c.count(e, max(after.functions.bytes(), minTableBytes)-e.bytes)
	c.shrink()
}

func (c *PerfMaps[K]) read(src MapSource, before *perfMap) (*perfMap, error) {
	file, err := src.OpenMap()
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, procfs.ErrNoProcess) {
		return before, nil // what is known may still be asked for
	}
	if err != nil {
		return before, err
	}
	room := c.room.begin(src.Owner())
	defer room.end()
	return before.update(file, c.opts.Now(), room)
}

// count counts more bytes for an entry, unless it was dropped.
func (c *PerfMaps[K]) count(e *mapped[K], n int) {
	if element := c.byKey[e.key]; element != nil && element.Value == e {
		e.bytes += n
		c.add(e.uid, n)
	}
}

// beingRead implements holder.
func (e *mapped[K]) beingRead() bool { return e.reading != nil }

// trim implements holder.
func (e *mapped[K]) trim() int { return 0 }

func (c *PerfMaps[K]) shrink() { c.shrinkTo(c.opts.MaxBytes) }

func (c *PerfMaps[K]) shrinkTo(bytes int) { c.held.shrinkTo(bytes, c.opts.idleSince(), c.drop) }

func (c *PerfMaps[K]) drop(element *list.Element) {
	e := c.order.Remove(element).(*mapped[K])
	delete(c.byKey, e.key)
	c.add(e.uid, -e.bytes)
}
