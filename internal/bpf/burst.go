//go:build linux && (amd64 || arm64)

package bpf

import "time"

const (
	// burstGap is how soon after a wake-up another one belongs to the same burst.
	burstGap = 20 * time.Millisecond
	// A reader waits for more of a burst, twice as long each time, and half as long when it has found
	// more than crowdedShare of a ring full.
	minGather    = time.Millisecond
	maxGather    = 100 * time.Millisecond
	crowdedShare = 4
)

// burst is how long a reader has waited for more, and until when.
type burst struct {
	gathered time.Duration
	until    time.Time
	crowded  bool
}

// gather returns how long a reader that was woken is to let more of a burst come: processes
// that start one after the other make several records each, and to be woken costs more than to
// take note of them. What comes alone is read at once.
func (b *burst) gather() time.Duration {
	b.gathered = b.next(time.Since(b.until))
	return b.gathered
}

// read notes that all was read that has come, and whether a ring might not have held much more.
func (b *burst) read(crowded bool) { b.until, b.crowded = time.Now(), crowded }

// next is how long to wait for more, of a record that has come so long after the last wait.
func (b *burst) next(after time.Duration) time.Duration {
	if after >= burstGap {
		return 0
	}
	if b.crowded {
		return max(minGather, b.gathered/2)
	}
	return min(max(minGather, 2*b.gathered), maxGather)
}
