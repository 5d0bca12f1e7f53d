//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

func newOffCPU(t *testing.T, config OffCPUConfig) *OffCPU {
	t.Helper()
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	o, err := s.OffCPU(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	return o
}

// startStorm starts threads that do nothing but switch.
func startStorm(t *testing.T) {
	t.Helper()
	testutil.BuildWriters(t)
	testutil.Start(t, "writer-v1-lib", "storm", "--threads", "8", "--seconds", "60")
}

// drainSwitches stops o, passes all that is left to visit and checks the account.
func drainSwitches(t *testing.T, o *OffCPU, visit func(*Switch)) SwitchCounters {
	t.Helper()
	require.NoError(t, o.Stop())
	c, err := o.Counters()
	require.NoError(t, err)
	require.NoError(t, o.Drain())
	left := uint64(0)
	var s Switch
	for {
		err := o.Read(&s)
		if errors.Is(err, ErrDrained) {
			break
		}
		if errors.Is(err, ErrIdle) {
			continue
		}
		require.NoError(t, err)
		if !s.Back {
			left++
		}
		visit(&s)
	}
	t.Logf("%+v", c)
	require.True(t, c.balanced())
	require.Equal(t, c.Submitted, left)
	after, err := o.Counters()
	require.NoError(t, err)
	require.Equal(t, c, after, "nothing runs after Stop")
	return c
}

// A process that waits for a known time is recorded on both sides of it.
func TestSwitchRecords(t *testing.T) {
	const wait = 300 * time.Millisecond
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: 64 << 20})
	require.NoError(t, o.Start())
	cmd := exec.Command("/bin/cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = in.Write([]byte{'x'})
	require.NoError(t, err)
	_, err = out.Read(make([]byte, 1)) // it runs, and will wait
	require.NoError(t, err)
	time.Sleep(wait + wait/2)
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	pid := uint32(cmd.Process.Pid)

	away := map[uint32]Record{}
	var longest time.Duration
	var longestState ThreadState
	c := drainSwitches(t, o, func(sw *Switch) {
		if !sw.Back {
			var r Record
			require.NoError(t, r.Parse(append([]byte(nil), sw.Raw...)))
			require.NotZero(t, r.Thread, "the idle task")
			require.Equal(t, sw.Thread, r.Thread)
			require.Equal(t, sw.LeftNs, r.TimeNs)
			require.NotZero(t, r.State)
			require.False(t, r.KernelThread)
			require.NotEqual(t, uint32(os.Getpid()), r.PID, "the own process")
			require.NotContains(t, away, sw.Thread, "it left without having returned")
			away[sw.Thread] = r
			return
		}
		r, ok := away[sw.Thread]
		require.True(t, ok, "it returned without having left")
		delete(away, sw.Thread)
		require.Equal(t, r.TimeNs, sw.LeftNs)
		require.GreaterOrEqual(t, sw.BackNs, sw.LeftNs)
		if took := time.Duration(sw.BackNs - sw.LeftNs); r.PID == pid && took > longest {
			longest, longestState = took, r.State
			require.EqualValues(t, profilerOutcomeOUTCOME_PRESENT, r.KernelStack)
			require.NotZero(t, r.KernelFrames)
			require.NotZero(t, r.UserFrames)
		}
	})
	t.Logf("away for %v", longest)
	require.GreaterOrEqual(t, longest, wait)
	require.Less(t, longest, wait+2*time.Second)
	require.EqualValues(t, offcpuThreadStateTHREAD_SLEEPING, longestState)
	require.Zero(t, c.ReturnsLost)
	require.NotZero(t, c.FilteredOwn)
	require.NotZero(t, c.FilteredIdle+c.FilteredKernel)
}

// Each switch is drawn by itself.
func TestSwitchThreshold(t *testing.T) {
	const threshold = 0.1
	o := newOffCPU(t, OffCPUConfig{Threshold: threshold, RingBufferBytes: 64 << 20})
	startStorm(t)
	require.NoError(t, o.Start())
	time.Sleep(200 * time.Millisecond)
	c := drainSwitches(t, o, func(*Switch) {})
	asked := float64(c.Switches - c.FilteredIdle - c.FilteredKernel - c.FilteredOwn)
	require.Greater(t, asked, 1000.0)
	drawn := asked - float64(c.FilteredNotDrawn)
	require.InDelta(t, threshold, drawn/asked, 5*math.Sqrt(threshold*(1-threshold)/asked))
}

// A ring buffer that nobody reads still has room for the return of each thread that
// was recorded when it left.
func TestSwitchRingFull(t *testing.T) {
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: MinRingBufferBytes})
	startStorm(t)
	require.NoError(t, o.Start())
	time.Sleep(500 * time.Millisecond)
	away := map[uint32]bool{}
	c := drainSwitches(t, o, func(sw *Switch) { away[sw.Thread] = !sw.Back })
	require.NotZero(t, c.Submitted)
	require.NotZero(t, c.DroppedRingFull)
	require.Zero(t, c.ReturnsLost)
}

// More threads that are away than there is room for are counted.
func TestSwitchTableFull(t *testing.T) {
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: 64 << 20, maxAway: 1})
	startStorm(t)
	require.NoError(t, o.Start())
	time.Sleep(200 * time.Millisecond)
	back := uint64(0)
	c := drainSwitches(t, o, func(sw *Switch) {
		if sw.Back {
			back++
		}
	})
	require.NotZero(t, c.DroppedTableFull)
	require.NotZero(t, c.Submitted)
	require.LessOrEqual(t, c.Submitted-back, uint64(1))
}

// What makes no sense is refused.
func TestOffCPUConfig(t *testing.T) {
	for _, c := range []OffCPUConfig{
		{Threshold: 0, RingBufferBytes: MinRingBufferBytes},
		{Threshold: MinOffCPUThreshold / 2, RingBufferBytes: MinRingBufferBytes},
		{Threshold: 1.01, RingBufferBytes: MinRingBufferBytes},
		{Threshold: math.NaN(), RingBufferBytes: MinRingBufferBytes},
		{Threshold: 1, RingBufferBytes: MinRingBufferBytes - 1},
	} {
		require.Error(t, c.validate(), "%+v", c)
	}
	c := OffCPUConfig{Threshold: MinOffCPUThreshold, RingBufferBytes: MinRingBufferBytes}
	require.NoError(t, c.validate())
	require.NotZero(t, c.drawBelow())
	require.EqualValues(t, 1<<32, (&OffCPUConfig{Threshold: 1}).drawBelow())
}
