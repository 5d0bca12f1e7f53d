//go:build linux && (amd64 || arm64)

package bench

import (
	"os"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/test/bench/emitted"
)

const (
	emissionTimeout = 2 * time.Minute
	emissionPoll    = 5 * time.Millisecond
	// emissionQuiet is how long nothing has been written at the end of a batch: it may come
	// in parts.
	emissionQuiet = 100 * time.Millisecond
)

// An emission follows what a collector emits.
type emission struct {
	c    *collector
	next int64     // offset in the file
	last time.Time // when it was seen to emit
}

// batch waits until the collector has emitted again, and returns that.
func (e *emission) batch() []emitted.Sample {
	e.c.t.Helper()
	require.Eventually(e.c.t, func() bool { return e.written() > e.next }, emissionTimeout, emissionPoll, "nothing is emitted")
	e.last = time.Now()
	for size := int64(0); size != e.written(); {
		size = e.written()
		time.Sleep(emissionQuiet)
	}
	return e.rest()
}

// written is the size of what it has emitted.
func (e *emission) written() int64 {
	e.c.t.Helper()
	info, err := os.Stat(e.c.profiles)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(e.c.t, err)
	return info.Size()
}

// rest returns what the collector has emitted meanwhile.
func (e *emission) rest() []emitted.Sample {
	e.c.t.Helper()
	samples, next, err := emitted.ReadFile(e.c.profiles, e.next)
	require.NoError(e.c.t, err)
	e.next = next
	return samples
}

// awaitLoad waits for a batch with samples of a load.
func (e *emission) awaitLoad(l *load) {
	e.c.t.Helper()
	for deadline := time.Now().Add(emissionTimeout); ; {
		for _, s := range e.batch() {
			if l.has(uint32(s.PID)) {
				return
			}
		}
		require.True(e.c.t, time.Now().Before(deadline), "no sample of a busy process is emitted")
	}
}
