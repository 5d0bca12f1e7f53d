//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

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

// startStorm starts threads that do nothing but switch. What waits for the kernel to be
// done with something, as Start does, comes before: it may take longer than the storm.
func startStorm(t *testing.T) {
	t.Helper()
	testutil.BuildWriters(t)
	testutil.Start(t, "writer-v1-lib", "storm", "--threads", "8", "--seconds", "60")
}

// awaitSwitches waits until enough has been counted.
func awaitSwitches(t *testing.T, o *OffCPU, enough func(*Counters) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := o.Counters()
		require.NoError(t, err)
		if enough(&c) {
			return
		}
		require.True(t, time.Now().Before(end), "not enough within a minute: %+v", c)
	}
}

// asked are the switches that were drawn or not.
func asked(c *Counters) uint64 {
	return c.Hits - c.FilteredIdle - c.FilteredKernel - c.FilteredOwn
}

// balanced reports whether it is known of each switch what became of it.
func balanced(c *Counters) bool {
	return c.Hits == c.Submitted+c.FilteredIdle+c.FilteredKernel+c.FilteredOwn+c.FilteredNotDrawn+c.FilteredTarget+
		c.DroppedRingFull+c.DroppedUserShare+c.DroppedTableFull+c.DroppedInternal
}

// drainSwitches stops o, passes all that is left to visit and checks the account.
func drainSwitches(t *testing.T, o *OffCPU, visit func(*Switch)) Counters {
	t.Helper()
	require.NoError(t, o.Stop())
	c, err := o.Counters()
	require.NoError(t, err)
	o.Drain()
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
	require.True(t, balanced(&c))
	require.Equal(t, c.Submitted, left)
	after, err := o.Counters()
	require.NoError(t, err)
	require.Equal(t, c, after, "nothing runs after Stop")
	return c
}

// awaitState waits until a process is in a state as proc(5) has it, S where it waits for something, and has left the
// CPU: /proc/PID/stat tells the state before that, /proc/PID/syscall says "running" until then (task_current_syscall,
// lib/syscall.c). A zombie makes no system call.
func awaitState(t *testing.T, pid int, state string) {
	t.Helper()
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || !strings.Contains(string(stat), ") "+state+" ") {
			return false
		}
		if state == "Z" {
			return true
		}
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
		return err == nil && !strings.HasPrefix(string(call), "running")
	}, time.Minute, time.Millisecond)
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
	began := time.Now()
	_, err = in.Write([]byte{'x'})
	require.NoError(t, err)
	_, err = out.Read(make([]byte, 1)) // it runs, and will wait
	require.NoError(t, err)
	awaitState(t, cmd.Process.Pid, "S")
	var during unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &during))
	time.Sleep(wait)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", cmd.Process.Pid))
	require.NoError(t, err)
	fields := strings.Fields(string(text))
	behind, err := strconv.ParseUint(fields[len(fields)-1], 0, 64)
	require.NoError(t, err, "%s", text)
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	took := time.Since(began)
	pid := uint32(cmd.Process.Pid)

	off := map[uint32]Record{}
	var away time.Duration
	var left Record
	c := drainSwitches(t, o, func(sw *Switch) {
		if !sw.Back {
			var r Record
			require.NoError(t, r.Parse(append([]byte(nil), sw.Raw...)))
			require.NotZero(t, sw.Thread, "the idle task")
			require.Equal(t, sw.LeftNs, r.TimeNs)
			require.NotZero(t, r.State)
			require.False(t, r.KernelThread)
			require.NotEqual(t, uint32(os.Getpid()), r.PID, "the own process")
			require.NotContains(t, off, sw.Thread, "it left without having returned")
			off[sw.Thread] = r
			return
		}
		r, ok := off[sw.Thread]
		require.True(t, ok, "it returned without having left")
		delete(off, sw.Thread)
		require.Equal(t, r.TimeNs, sw.LeftNs)
		require.GreaterOrEqual(t, sw.BackNs, sw.LeftNs)
		if r.PID == pid && sw.LeftNs <= uint64(during.Nano()) && uint64(during.Nano()) <= sw.BackNs {
			away, left = time.Duration(sw.BackNs-sw.LeftNs), r
		}
	})
	t.Logf("off the CPU for %v", away)
	require.GreaterOrEqual(t, away, wait)
	require.Less(t, away, took)
	require.EqualValues(t, offcpuThreadStateTHREAD_SLEEPING, left.State)
	require.EqualValues(t, profilerOutcomeOUTCOME_PRESENT, left.KernelStack)
	require.NotEmpty(t, left.KernelFrames)
	require.NotEmpty(t, left.UserFrames)
	require.Equal(t, behind-1, left.UserFrames[0], "in the instruction of its system call")
	require.Zero(t, c.ReturnsLost)
	require.NotZero(t, c.FilteredOwn)
	require.NotZero(t, c.FilteredIdle+c.FilteredKernel)
}

// returnsOfDepartures checks that a thread returns once for each time that it was recorded
// when it left.
func returnsOfDepartures(t *testing.T) func(*Switch) {
	off := map[[2]uint64]bool{}
	return func(sw *Switch) {
		which := [2]uint64{uint64(sw.Thread), sw.LeftNs}
		if sw.Back {
			require.True(t, off[which], "it returned, and was not recorded when it left")
		}
		off[which] = !sw.Back
	}
}

// Each switch is drawn by itself.
func TestSwitchThreshold(t *testing.T) {
	const threshold = 0.1
	o := newOffCPU(t, OffCPUConfig{Threshold: threshold, RingBufferBytes: 64 << 20})
	require.NoError(t, o.Start())
	startStorm(t)
	awaitSwitches(t, o, func(c *Counters) bool { return asked(c) > 1000 })
	c := drainSwitches(t, o, returnsOfDepartures(t))
	all := float64(asked(&c))
	drawn := all - float64(c.FilteredNotDrawn)
	require.InDelta(t, threshold, drawn/all, 5*math.Sqrt(threshold*(1-threshold)/all))
}

// A ring buffer that nobody reads still has room for the return of each thread that
// was recorded when it left, however large the records are.
func TestSwitchRingFull(t *testing.T) {
	program := buildTarget(t)
	for _, name := range []string{"many", "large"} {
		if name == "large" && testutil.LeftOut(t, "large stacks") {
			continue // arithmetic, the same on every kernel, and loading takes long
		}
		t.Run(name, func(t *testing.T) {
			o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: MinRingBufferBytes})
			if name == "large" { // stacks of 8 KiB; each takes the CPU from another
				for range 2 * runtime.NumCPU() {
					startTarget(t, program, "depth-2000") // their starts would fill it with small ones
				}
			}
			require.NoError(t, o.Start())
			if name == "many" {
				startStorm(t)
			}
			awaitSwitches(t, o, func(c *Counters) bool { return c.DroppedRingFull > 100 })
			left, returns, last := 0, 0, 0 // bytes; last: of returns behind the last one that left
			check := returnsOfDepartures(t)
			c := drainSwitches(t, o, func(sw *Switch) {
				check(sw)
				if sw.Back {
					last += returnBytes
					return
				}
				left += (ringHeadBytes + len(sw.Raw) + 7) &^ 7
				// The last returns may have come between the look for room and the record.
				const late = 64
				require.LessOrEqual(t, left+returns, MinRingBufferBytes-MinRingBufferBytes/returnShare+late*returnBytes,
					"it takes of what is for returns")
				returns, last = returns+last, 0
			})
			require.NotZero(t, c.Submitted)
			require.Zero(t, c.ReturnsLost)
		})
	}
}

// More threads off the CPU than there is room for are counted.
func TestSwitchTableFull(t *testing.T) {
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: 64 << 20, maxThreads: 1})
	require.NoError(t, o.Start())
	startStorm(t)
	awaitSwitches(t, o, func(c *Counters) bool { return c.DroppedTableFull > 0 && c.Submitted > 0 })
	back := uint64(0)
	c := drainSwitches(t, o, func(sw *Switch) {
		if sw.Back {
			back++
		}
	})
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
