//go:build linux && (amd64 || arm64)

package bpf

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A sample stands for a period of CPU time: as many come of a process as it has used periods.
func TestPeriod(t *testing.T) {
	const enough = time.Second
	program := buildTarget(t)
	config := Config{SamplesPerSecond: 997, RingBufferBytes: 64 << 20} // nobody reads meanwhile
	testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
		s := newSampler(t, config)
		tgt := startTarget(t, program, "labels-1")
		pin(t, tgt.pid, 0)
		used := func() time.Duration {
			ns, _ := schedule(t, tgt.pid)
			return time.Duration(ns)
		}
		// While sampling starts and stops, it may or may not be sampled.
		before := used()
		require.NoError(t, s.Start())
		started := used()
		require.Eventually(t, func() bool { return used()-started > enough }, time.Minute, 10*time.Millisecond, "the target gets no CPU")
		stopping := used()
		samples := 0
		var last uint64
		var apart []time.Duration // each two that follow each other, on the same CPU
		drain(t, s, func(r *Record) {
			if r.PID == tgt.pid {
				samples++
				apart = append(apart, time.Duration(r.TimeNs-last))
				last = r.TimeNs
			}
		})
		after := used()
		c, err := s.Counters()
		require.NoError(t, err)
		require.Zero(bounds, c.DroppedRingFull)
		sampled := time.Duration(samples) * config.Period()
		t.Logf("%d samples, for %v, in %v to %v of CPU time", samples, sampled, stopping-started, after-before)
		if sampled < (stopping-started)*7/10 { // what a hypervisor takes of a CPU counts as CPU time, and has no samples
			require.GreaterOrEqual(bounds, sampled, (stopping-started)/4)
			slices.Sort(apart)
			require.InEpsilon(bounds, config.Period(), apart[len(apart)/2], 0.1)
		}
		require.LessOrEqual(bounds, sampled, (after-before)*13/10)
	})
}
