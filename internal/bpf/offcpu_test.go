//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func newOffCPU(t *testing.T, s *Sampler, config OffCPUConfig) *OffCPU {
	t.Helper()
	o, err := s.OffCPU(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	return o
}

// drainSwitches stops o and passes all that is left to visit.
func drainSwitches(t *testing.T, o *OffCPU, visit func(*Switch)) {
	t.Helper()
	require.NoError(t, o.Stop())
	require.NoError(t, o.Drain())
	var s Switch
	for {
		err := o.Read(&s)
		switch {
		case errors.Is(err, ErrDrained):
			return
		case errors.Is(err, ErrIdle):
		default:
			require.NoError(t, err)
			visit(&s)
		}
	}
}

func requireSwitchAccount(t *testing.T, c SwitchCounters) {
	t.Helper()
	require.Equal(t, c.Switches, c.Submitted+c.FilteredIdle+c.FilteredKernel+c.FilteredOwn+c.FilteredNotDrawn+
		c.DroppedRingFull+c.DroppedTableFull+c.DroppedInternal, "%+v", c)
}

// Every process sleeps for as long as it was told, and is recorded on both sides of it.
func TestSwitchRecords(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	o := newOffCPU(t, s, OffCPUConfig{Threshold: 1, RingBufferBytes: 8 << 20})
	require.NoError(t, o.Start())
	cmd := exec.Command("/bin/sleep", "0.3")
	require.NoError(t, cmd.Run())
	pid := uint32(cmd.Process.Pid)

	away := map[uint32]Record{}
	var longest time.Duration
	submitted := uint64(0)
	drainSwitches(t, o, func(sw *Switch) {
		if !sw.Back {
			submitted++
			var r Record
			require.NoError(t, r.Parse(sw.Raw))
			require.Equal(t, sw.Thread, r.Thread)
			require.Equal(t, sw.LeftNs, r.TimeNs)
			require.NotZero(t, r.State)
			require.NotContains(t, away, sw.Thread)
			if r.Thread == 0 {
				t.Fatal("the idle task has no labels")
			}
			away[sw.Thread] = r
			return
		}
		r, ok := away[sw.Thread]
		require.True(t, ok)
		delete(away, sw.Thread)
		require.Equal(t, r.TimeNs, sw.LeftNs)
		require.GreaterOrEqual(t, sw.BackNs, sw.LeftNs)
		if r.PID == pid && time.Duration(sw.BackNs-sw.LeftNs) > longest {
			longest = time.Duration(sw.BackNs - sw.LeftNs)
			require.EqualValues(t, profilerOutcomeOUTCOME_PRESENT, r.KernelStack)
			require.NotZero(t, r.KernelFrames)
			require.NotZero(t, r.UserFrames)
			t.Logf("%v in state %d: %x %x", longest, r.State, r.KernelFrames, r.UserFrames)
		}
	})
	require.GreaterOrEqual(t, longest, 300*time.Millisecond)
	require.Less(t, longest, 2*time.Second)
	c, err := o.Counters()
	require.NoError(t, err)
	t.Logf("%+v", c)
	requireSwitchAccount(t, c)
	require.Equal(t, c.Submitted, submitted)
	require.Zero(t, c.ReturnsLost)
	require.NotZero(t, c.FilteredIdle+c.FilteredKernel)
	require.NotZero(t, c.FilteredOwn)
	runtime.KeepAlive(unix.Getpid)
}
