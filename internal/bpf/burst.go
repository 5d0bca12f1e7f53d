//go:build linux && (amd64 || arm64)

package bpf

import "time"

const (
	// burstGap is how soon after a wake-up another one belongs to the same burst.
	burstGap = 20 * time.Millisecond
	// A reader waits for more of a burst, twice as long each time.
	minGather = time.Millisecond
	maxGather = 50 * time.Millisecond
)

// burst is how long a reader has waited for more, and until when.
type burst struct {
	gathered time.Duration
	until    time.Time
}

// gather returns how long a reader is to wait that was woken, or has just read something of a
// burst. That lets more of it come: processes that start one after the other make several
// records each, and to be woken costs more than to take note of them. What comes alone is read
// at once.
func (b *burst) gather() time.Duration {
	b.gathered = b.next(time.Since(b.until))
	return b.gathered
}

// read notes that all was read that has come. It reports whether the reader is to look for
// more by itself: while a burst lasts, nobody need wake it.
func (b *burst) read(some bool) (goOn bool) {
	b.until = time.Now()
	return some && b.gathered > 0
}

// next is how long to wait for more, of a record that has come so long after the last wait.
func (b *burst) next(after time.Duration) time.Duration {
	if after >= burstGap {
		return 0
	}
	return min(max(minGather, 2*b.gathered), maxGather)
}
