//go:build linux && (amd64 || arm64)

package bpf

import (
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// While the kernel keeps statistics, its count of runs is that of our hits.
func TestProgramRuntime(t *testing.T) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	defer stats.Close()
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	began := time.Now()
	require.NoError(t, s.Start())
	require.Eventually(t, func() bool {
		c, err := s.Counters()
		require.NoError(t, err)
		return c.Hits > 100
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, s.Stop())
	c, err := s.Counters()
	require.NoError(t, err)
	runs, total, err := s.ProgramRuntime()
	require.NoError(t, err)
	require.Equal(t, c.Hits, runs)
	require.Greater(t, total/time.Duration(runs), 10*time.Nanosecond)
	require.Less(t, total, time.Since(began)*time.Duration(runtime.NumCPU()), "no more than there was")
}
