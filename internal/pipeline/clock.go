//go:build linux && (amd64 || arm64)

package pipeline

import (
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

var errClock = errors.New("the time namespace sets CLOCK_MONOTONIC off from the host's, by which the kernel tells when samples were taken: start the collector without such an offset (unshare --monotonic, timeOffsets of OCI)")

// checkClock fails where our CLOCK_MONOTONIC is known not to be the one of samples and events.
func checkClock(fs procfs.FS) error {
	if offset, err := fs.MonotonicOffset(); err == nil && offset != 0 {
		return fmt.Errorf("%w: it is %v", errClock, time.Duration(offset))
	}
	return nil
}

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
