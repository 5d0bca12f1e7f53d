//go:build linux

package executable

import "time"

const (
	// backoffGap is the time after which what has failed is tried again, backoffGap<<maxBackoff
	// the longest.
	backoffGap = time.Second
	maxBackoff = 8
)

// Backoff says when to try again what may pass: each time after twice the time before. The
// zero Backoff is due.
type Backoff struct {
	tries int
	ns    int64 // CLOCK_MONOTONIC
}

// Due reports whether it is time, in CLOCK_MONOTONIC.
func (b Backoff) Due(nowNs int64) bool { return nowNs >= b.ns }

// Next returns what holds after a try that has failed, or that begins now.
func (b Backoff) Next(nowNs int64) Backoff {
	return Backoff{min(b.tries+1, maxBackoff), nowNs + int64(backoffGap)<<b.tries}
}

// renews forgets a file that had a fault if it is to be read again, and reports that.
func (c *Cache) renews(f *File, mine bool) bool {
	again := c.readsAgain(f, mine)
	if again {
		c.forget(f)
	}
	return again
}

// readsAgain reports whether a file that had a fault is to be read again by the caller. mine
// tells that the caller has just read it.
func (c *Cache) readsAgain(f *File, mine bool) bool {
	if f.facts.Fault == nil && !mine {
		return false
	}
	key, now := f.origin().key, c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	again, known := c.faulty[key]
	switch {
	case f.facts.Fault == nil:
		delete(c.faulty, key)
		return false
	case known && (mine || !again.Due(now)):
		return false
	}
	if len(c.faulty) >= c.max {
		clear(c.faulty)
	}
	c.faulty[key] = again.Next(now) // counted before it is read, so that others do not do so, too
	return !mine
}
