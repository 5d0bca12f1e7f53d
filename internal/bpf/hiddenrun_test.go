//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A thread that has run without its return having been seen, as hosts hide some switches,
// was back for as long as it has used the CPU since it left.
func TestHiddenRun(t *testing.T) {
	const ran = time.Hour
	program := buildTarget(t)
	o := newOffCPU(t, OffCPUConfig{Threshold: MinOffCPUThreshold, RingBufferBytes: 1 << 20})
	off, running := mapOfSwitches(t, o, offcpuMapOffCpuThreads), mapOfSwitches(t, o, offcpuMapRunning)
	tgt := startTarget(t, program, "labels-1")
	id := identify(t, o.sampler, tgt.pid)
	key := offcpuThreadId{Thread: id.TGID, StartNs: id.StartNs}
	another := make([]uint32, o.sampler.cpus.Possible)
	for cpu := range another {
		another[cpu] = 1 << 31
	}
	require.NoError(t, o.Start())
	for end, attempt := time.Now().Add(time.Minute), uint64(1); ; attempt++ {
		require.True(t, time.Now().Before(end), "the target was never on the CPU while it was made to have left: %d attempts", attempt)
		var before, after unix.Timespec
		require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &before))
		used, runs := schedule(t, tgt.pid)
		// Now, as the program sees it, another thread runs, and the target has been off the CPU for long.
		require.NoError(t, running.Put(uint32(0), another))
		left := struct{ TimeNs, UsedNs uint64 }{attempt, used - uint64(ran)}
		require.NoError(t, off.Put(key, left))
		require.NoError(t, syscall.Kill(int(tgt.pid), syscall.SIGSTOP))
		awaitState(t, int(tgt.pid), "T")
		require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &after))
		_, runsThen := schedule(t, tgt.pid)
		if err := off.Delete(key); !errors.Is(err, ebpf.ErrKeyNotExist) {
			require.NoError(t, err)
		}
		back := returnsOf(t, o, attempt)
		require.NoError(t, syscall.Kill(int(tgt.pid), syscall.SIGCONT))
		if runs != runsThen { // it has been switched to, which is no hidden return
			for now := runsThen; now == runsThen && time.Now().Before(end); { // until it is again: then it has just got a CPU
				_, now = schedule(t, tgt.pid)
			}
			continue
		}
		require.Len(t, back, 1)
		backNs := int64(back[0].BackNs) + int64(ran)
		require.LessOrEqual(t, backNs, after.Nano())
		require.Greater(t, backNs, before.Nano()-int64(time.Minute))
		return
	}
}

func mapOfSwitches(t *testing.T, o *OffCPU, name string) *ebpf.Map {
	t.Helper()
	info, err := o.objs.SwitchThreads.Info()
	require.NoError(t, err)
	ids, ok := info.MapIDs()
	require.True(t, ok)
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		require.NoError(t, err)
		t.Cleanup(func() { _ = m.Close() })
		if info, err := m.Info(); err == nil && info.Name == name {
			return m
		}
	}
	t.Fatalf("the program has no map %s", name)
	return nil
}

// schedule returns the CPU time that a process of one thread has used, and how often it
// was switched to.
func schedule(t *testing.T, pid uint32) (usedNs, runs uint64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	require.NoError(t, err)
	var waited uint64
	_, err = fmt.Sscan(string(b), &usedNs, &waited, &runs)
	require.NoError(t, err)
	return usedNs, runs
}

// returnsOf reads all that is there for returns of a thread that left at a time.
func returnsOf(t *testing.T, o *OffCPU, leftNs uint64) (back []Switch) {
	t.Helper()
	o.Drain()
	var s Switch
	for {
		err := o.Read(&s)
		if errors.Is(err, ErrDrained) {
			return back
		}
		if errors.Is(err, ErrIdle) {
			continue
		}
		require.NoError(t, err)
		if s.Back && s.LeftNs == leftNs {
			back = append(back, s)
		}
	}
}
