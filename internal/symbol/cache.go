package symbol

import (
	"container/list"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// Opener opens a file; whoever calls it closes the file.
type Opener interface {
	Open() (file *os.File, size int64, err error)
}

// CacheOptions bound a Cache. Zero values stand for the defaults.
type CacheOptions struct {
	MaxBytes      int           // of all tables
	MaxTableBytes int           // of one table
	Wait          time.Duration // for a file to be read
	Now           func() time.Time
}

const (
	defaultMaxBytes      = 64 << 20
	defaultMaxTableBytes = 32 << 20
	defaultWait          = 2 * time.Second
	// maxLoads is the number of files that are read at the same time.
	maxLoads = 8
	// retryAfter is when a file is tried again that could not be read.
	retryAfter = time.Minute
	// minTableBytes is what a table counts for at least, and a failure.
	minTableBytes = 512
)

var errBusy = errors.New("too many files are being read")

// Cache holds the symbol tables of files, those used last. K identifies the
// contents of a file. Its methods may be called from everywhere.
type Cache[K comparable] struct {
	opts CacheOptions

	mu    sync.Mutex
	order *list.List // of *cached[K], the most recently used first
	byKey map[K]*list.Element
	bytes int
	loads int
	stats CacheStats
}

// cached is a table, or a file that is being read.
type cached[K comparable] struct {
	key      K
	deadline time.Time     // until when callers wait
	done     chan struct{} // closed when the rest is set
	table    *Table        // nil if the file could not be read
	err      error
	failedAt time.Time
	bytes    int // counted for it
}

// CacheStats counts what a cache has done and what it holds.
type CacheStats struct {
	Tables, Bytes int
	Loads         uint64 // files that were read
	Failures      uint64 // files that could not be read, or not in whole
	Truncated     uint64 // files with more functions than are kept
	TimedOut      uint64 // lookups that gave up waiting for a file
	Refused       uint64 // lookups for which too many files were being read
}

// NewCache makes an empty cache.
func NewCache[K comparable](opts CacheOptions) *Cache[K] {
	if opts.MaxBytes == 0 {
		opts.MaxBytes = defaultMaxBytes
	}
	if opts.MaxTableBytes == 0 {
		opts.MaxTableBytes = defaultMaxTableBytes
	}
	// A table must not take more than all may: the one used last is always kept.
	opts.MaxTableBytes = min(opts.MaxTableBytes, opts.MaxBytes)
	if opts.Wait == 0 {
		opts.Wait = defaultWait
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Cache[K]{opts: opts, order: list.New(), byKey: map[K]*list.Element{}}
}

// Lookup returns the function that holds a virtual address of a file. When
// the file is not known yet, it is opened and read; Lookup waits for that at
// most CacheOptions.Wait in all, and gives up then.
func (c *Cache[K]) Lookup(key K, file Opener, vaddr uint64) (Function, bool) {
	t := c.table(key, file)
	if t == nil {
		return Function{}, false
	}
	return t.Lookup(vaddr)
}

// Stats returns the counts as of now.
func (c *Cache[K]) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Tables, s.Bytes = c.order.Len(), c.bytes
	return s
}

// table returns the table of a file, or nil.
func (c *Cache[K]) table(key K, file Opener) *Table {
	e, err := c.entry(key, file)
	if err != nil {
		return nil
	}
	select {
	case <-e.done:
		return e.table
	default:
	}
	timer := time.NewTimer(e.deadline.Sub(c.opts.Now()))
	defer timer.Stop()
	select {
	case <-e.done:
		return e.table
	case <-timer.C:
		c.mu.Lock()
		c.stats.TimedOut++
		c.mu.Unlock()
		return nil
	}
}

// entry returns the entry of a file, perhaps one that is just being filled.
func (c *Cache[K]) entry(key K, file Opener) (*cached[K], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opts.Now()
	if element := c.byKey[key]; element != nil {
		e := element.Value.(*cached[K])
		if e.failedAt.IsZero() || now.Sub(e.failedAt) < retryAfter {
			c.order.MoveToFront(element)
			return e, nil
		}
		c.drop(element)
	}
	if c.loads == maxLoads {
		c.stats.Refused++
		return nil, errBusy
	}
	c.loads++
	c.stats.Loads++
	e := &cached[K]{key: key, done: make(chan struct{}), deadline: now.Add(c.opts.Wait), bytes: minTableBytes}
	c.byKey[key] = c.order.PushFront(e)
	c.bytes += e.bytes
	go c.load(e, file)
	return e, nil
}

// load fills an entry.
func (c *Cache[K]) load(e *cached[K], file Opener) {
	table, err := readTable(file, c.opts.MaxTableBytes)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loads--
	e.table, e.err = table, err
	if err != nil {
		c.stats.Failures++
	}
	if table == nil {
		e.failedAt = c.opts.Now()
	} else {
		if table.Truncated() {
			c.stats.Truncated++
		}
		// It may have been dropped while it was being read.
		if element := c.byKey[e.key]; element != nil && element.Value == e {
			c.bytes += max(table.Bytes(), minTableBytes) - e.bytes
			e.bytes = max(table.Bytes(), minTableBytes)
		}
	}
	close(e.done)
	for c.bytes > c.opts.MaxBytes && c.order.Len() > 1 {
		c.drop(c.order.Back())
	}
}

func (c *Cache[K]) drop(element *list.Element) {
	e := c.order.Remove(element).(*cached[K])
	delete(c.byKey, e.key)
	c.bytes -= e.bytes
}

// readTable reads a file. A damaged one may yield both a table and an error.
func readTable(file Opener, maxBytes int) (*Table, error) {
	f, size, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, err := elffile.New(f, size)
	if err != nil {
		return nil, err
	}
	return NewTable(e, maxBytes)
}
