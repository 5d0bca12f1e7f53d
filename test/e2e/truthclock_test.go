//go:build linux && (amd64 || arm64)

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const nativeClockError = 5 * time.Microsecond

// clockError bounds how far the time of a sample, taken back to CLOCK_MONOTONIC, may be
// from the instant at which BPF read that clock.
//
// A clock that is slewed goes into both clocks, so that Unix time minus CLOCK_MONOTONIC is
// one number until somebody sets the clock; clockOffsets knows it to some nanoseconds. The
// receiver has it from the shortest of five readings of the one clock between two of the
// other, and is off by at most half of what that took: far less than a microsecond unless
// all five are interrupted. BPF's reading may be off by some nanoseconds while the kernel
// changes the speed of its clock.
func clockError(t testing.TB) time.Duration {
	return testutil.Threshold(t, "error of a sample's time", nativeClockError, 500*time.Microsecond)
}

// clockMemory is how long before a batch came its samples may have been taken.
const clockMemory = time.Minute

// clockOffsets is what Unix time minus CLOCK_MONOTONIC has been lately: one number, and
// another one from each time on that the clock was set. It belongs to one goroutine.
type clockOffsets []clockOffset

// clockOffset is known to lie in [least, most].
type clockOffset struct {
	least, most int64
	seen        int64 // last, CLOCK_MONOTONIC
}

// measure is to be called again and again; each time narrows what is known.
func (c *clockOffsets) measure(t testing.TB) {
	for range 20 {
		before, real, after := clockNs(t, unix.CLOCK_MONOTONIC), clockNs(t, unix.CLOCK_REALTIME), clockNs(t, unix.CLOCK_MONOTONIC)
		c.add(clockOffset{real - after - 1, real - before + 1, after}) // clocks are cut to nanoseconds
	}
}

func (c *clockOffsets) add(now clockOffset) {
	all := *c
	if len(all) > 0 {
		last := &all[len(all)-1]
		least, most := max(last.least, now.least), min(last.most, now.most)
		if least <= most {
			last.least, last.most, last.seen = least, most, now.seen
			return
		}
	}
	all = slices.DeleteFunc(all, func(o clockOffset) bool { return now.seen-o.seen > int64(clockMemory) })
	*c = append(all, now)
}

// monotonic gives where on CLOCK_MONOTONIC a sample's time lies, by each offset that there
// was: the receiver takes one for a batch.
func (o clockOffset) monotonic(unixNano uint64, tolerance time.Duration) (from, to uint64) {
	return unixNano - uint64(o.most+int64(tolerance)), unixNano - uint64(o.least-int64(tolerance))
}

func clockNs(t testing.TB, clock int32) int64 {
	var ts unix.Timespec
	require.NoError(t, unix.ClockGettime(clock, &ts))
	return ts.Nano()
}

func TestClockOffsets(t *testing.T) {
	var c clockOffsets
	c.add(clockOffset{100, 140, 1})
	c.add(clockOffset{120, 170, 2})
	require.Equal(t, clockOffsets{{120, 140, 2}}, c)
	c.add(clockOffset{500, 510, 3}) // the clock was set
	c.add(clockOffset{490, 505, 4})
	require.Equal(t, clockOffsets{{120, 140, 2}, {500, 505, 4}}, c)
	c.add(clockOffset{900, 910, 4 + int64(clockMemory)})
	require.Equal(t, clockOffsets{{500, 505, 4}, {900, 910, 4 + int64(clockMemory)}}, c)
	from, to := c[0].monotonic(10_000, 10)
	require.EqualValues(t, 10_000-505-10, from)
	require.EqualValues(t, 10_000-500+10, to)

	var now clockOffsets
	now.measure(t)
	require.Len(t, now, 1)
}
