//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A sample stands for a period of CPU time: as many come of a process as it has used periods.
func TestPeriod(t *testing.T) {
	const enough = 500 * time.Millisecond
	program := buildTarget(t)
	config := Config{SamplesPerSecond: 997, RingBufferBytes: 8 << 20}
	s := newSampler(t, config)
	tgt := startTarget(t, program, "labels-1")
	pin(t, tgt.pid, 0)
	before, _ := schedule(t, tgt.pid)
	require.NoError(t, s.Start())
	used := uint64(0)
	require.Eventually(t, func() bool {
		now, _ := schedule(t, tgt.pid)
		used = now - before
		return used > uint64(enough)
	}, time.Minute, 10*time.Millisecond, "the target gets no CPU")
	samples := 0
	drain(t, s, func(r *Record) {
		if r.PID == tgt.pid {
			samples++
		}
	})
	c, err := s.Counters()
	require.NoError(t, err)
	require.Zero(t, c.DroppedRingFull)
	t.Logf("%d samples in %v of CPU time", samples, time.Duration(used))
	require.InEpsilon(t, float64(used), float64(samples)*float64(config.Period()), 0.3)
}
