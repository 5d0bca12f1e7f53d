//go:build linux && (amd64 || arm64)

package bpf

import "time"

const (
	// burstGap is how soon after a wake-up another one belongs to the same burst.
	burstGap = 20 * time.Millisecond
	// gatherTime is how long more of a burst is waited for: no longer than a new process is
	// left alone anyway.
	gatherTime = time.Millisecond
)

// burst is when a reader was woken last.
type burst struct{ wokenAt time.Time }

// gather is called by a reader that was woken. It lets more of a burst come: processes that
// start and end one after the other make several records each, and to be woken costs more
// than to take note of them. What comes alone is read at once.
func (b *burst) gather() {
	if time.Since(b.wokenAt) < burstGap {
		time.Sleep(gatherTime)
	}
	b.wokenAt = time.Now()
}
