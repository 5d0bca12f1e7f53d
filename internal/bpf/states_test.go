//go:build linux && (amd64 || arm64)

package bpf

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A record says why the thread left the CPU.
func TestSwitchStates(t *testing.T) {
	target, stacks := buildTarget(t), buildStacks(t)
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: 64 << 20})
	require.NoError(t, o.Start())
	sleeper := exec.Command("/bin/sleep", "60")
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	})
	awaitState(t, sleeper.Process.Pid, "S")
	stopped := startTarget(t, target, "labels-1")
	require.NoError(t, syscall.Kill(int(stopped.pid), syscall.SIGSTOP))
	awaitState(t, int(stopped.pid), "T")
	waiting, _ := startStacks(t, stacks, "vforked") // for its child, which stays
	awaitState(t, int(waiting), "D")
	ready := map[uint32]bool{}
	for range 3 { // of one CPU
		tgt := startTarget(t, target, "in-kernel")
		pin(t, tgt.pid, runtime.NumCPU()-1)
		ready[tgt.pid] = true
	}
	awaitSwitches(t, o, func(c *Counters) bool { return c.Submitted > 0 })
	time.Sleep(500 * time.Millisecond)
	seen := map[uint32]map[record.ThreadState]int{}
	drainSwitches(t, o, func(sw *Switch) {
		var r Record
		if sw.Back {
			return
		}
		require.NoError(t, r.Parse(sw.Raw))
		pid := r.PID
		if ready[pid] {
			pid = 0
		}
		if seen[pid] == nil {
			seen[pid] = map[record.ThreadState]int{}
		}
		seen[pid][r.State]++
	})
	require.NotZero(t, seen[uint32(sleeper.Process.Pid)][record.ThreadState(offcpuThreadStateTHREAD_SLEEPING)])
	require.NotZero(t, seen[stopped.pid][record.ThreadState(offcpuThreadStateTHREAD_STOPPED)])
	require.NotZero(t, seen[waiting][record.ThreadState(offcpuThreadStateTHREAD_UNINTERRUPTIBLE)])
	require.NotZero(t, seen[0][record.ThreadState(offcpuThreadStateTHREAD_RUNNABLE)])
	for _, states := range seen {
		require.Zero(t, states[record.ThreadState(offcpuThreadStateTHREAD_RUNNING)], "it left")
	}
}

// Threads of one process leave and come back each for itself.
func TestSwitchThreads(t *testing.T) {
	program := buildTarget(t)
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: 64 << 20})
	require.NoError(t, o.Start())
	tgt := startTarget(t, program, "napping-thread")
	off := map[uint32]uint64{} // by thread: since when
	pairs := 0
	var sw Switch
	for end := time.Now().Add(time.Minute); pairs < 10; {
		require.True(t, time.Now().Before(end), "the thread does not come and go")
		err := o.Read(&sw)
		if err == ErrIdle { //nolint:errorlint // never wrapped
			continue
		}
		require.NoError(t, err)
		if sw.Back {
			if left, ok := off[sw.Thread]; ok {
				require.Equal(t, left, sw.LeftNs)
				pairs++
			}
			delete(off, sw.Thread)
			continue
		}
		var r Record
		require.NoError(t, r.Parse(sw.Raw))
		if r.PID == tgt.pid && r.TID != tgt.pid {
			require.NotContains(t, off, sw.Thread, "it left without having returned")
			off[sw.Thread] = sw.LeftNs
		}
	}
}

// What has been read makes room: switches are recorded for as long as there are some.
func TestSwitchesGoOn(t *testing.T) {
	program := buildTarget(t)
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, o.Start())
	startTarget(t, program, "napping-thread")
	var sw Switch
	bytes := 0
	for end := time.Now().Add(time.Minute); bytes < 4*MinRingBufferBytes; {
		require.True(t, time.Now().Before(end), "%d bytes", bytes)
		if err := o.Read(&sw); err != ErrIdle { //nolint:errorlint // never wrapped
			require.NoError(t, err)
			bytes += len(sw.Raw)
		}
	}
}
