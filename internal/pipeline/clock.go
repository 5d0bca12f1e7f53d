//go:build linux && (amd64 || arm64)

package pipeline

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

// monotonicNow is CLOCK_MONOTONIC, in ns.
func monotonicNow() uint64 { return uint64(budget.Clock(unix.CLOCK_MONOTONIC)) }

// clockOffset is what turns CLOCK_MONOTONIC into Unix time now. The realtime
// clock is read between two readings of the other, whose middle it is set against.
// When the thread was interrupted in between, that middle is off: the shortest of
// a few tries counts.
func clockOffset() (offset, mono uint64) {
	const tries = 5
	shortest := uint64(math.MaxUint64)
	for range tries {
		before := monotonicNow()
		realtime := uint64(budget.Clock(unix.CLOCK_REALTIME))
		took := monotonicNow() - before
		if took < shortest {
			shortest = took
			mono = before + took/2
			offset = realtime - mono
		}
	}
	return offset, mono
}
