//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// A record says whose process it was: the user, not the group.
func TestRecordUser(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	pid := startAs(t, floodUser, spin)
	readUntil(t, s, func(r *Record) bool {
		if r.PID != uint32(pid) || string(r.Comm) != "sh" { // before, it is a copy of the test
			return false
		}
		require.EqualValues(t, floodUser, r.UID)
		return true
	})
}

// A thread that is not the first of its process has labels and a number of its own, and
// the identity of the process.
func TestRecordThread(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "thread")
	id := identify(t, s, tgt.pid)
	require.NoError(t, s.SetLabelSources(id, []LabelSource{{ABI: uint8(labels.ABIV1), Offset: tgt.offsetV1}}))
	require.NoError(t, s.Start())
	cache := labels.NewCache(1 << 20)
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid {
			return false
		}
		require.Equal(t, id, r.Process)
		if r.TID == tgt.pid { // the first thread, which waits
			return false
		}
		require.Equal(t, "k0=v0", show(cache.Decode(nil, r.Labels).Set))
		require.NotEqual(t, r.Process.TGID, r.Thread)
		seen++
		return seen == samplesPerState
	})
}

// Threads that begin and end are no processes that do.
func TestThreadsAreNoProcesses(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	tgt := startTarget(t, program, "thread-ended")
	require.NoError(t, syscall.Kill(int(tgt.pid), syscall.SIGTERM))
	awaitState(t, int(tgt.pid), "Z")
	behind := exec.Command("/bin/true") // its events come behind all of the target's
	require.NoError(t, behind.Run())
	var told []EventKind
	for ev := (ProcessEvent{}); ev.Kind != EventExit || ev.PID != uint32(behind.Process.Pid); {
		require.NoError(t, s.ReadEvent(&ev))
		if ev.PID == tgt.pid {
			told = append(told, ev.Kind)
		}
	}
	require.Equal(t, []EventKind{EventFork, EventExec, EventExit}, told)
}

// A thread that ends has no labels and no user stack any more: its memory may be another
// thread's by then.
func TestEndingThreads(t *testing.T) {
	const inEnding = "exit_mm_release" // of the kernel; called when the task is marked
	start, limit := kernelFunction(t, inEnding)
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "ending-threads")
	require.NoError(t, s.SetLabelSources(identify(t, s, tgt.pid), []LabelSource{{ABI: uint8(labels.ABIV1), Offset: tgt.offsetV1}}))
	require.NoError(t, s.Start())
	ending, alive := 0, 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid || r.TID == tgt.pid {
			return false
		}
		if slices.ContainsFunc(r.KernelFrames, func(addr uint64) bool { return addr >= start && addr < limit }) {
			require.False(t, r.Known)
			require.Empty(t, r.Labels)
			require.Empty(t, r.UserFrames)
			ending++
		} else if r.Known {
			alive++
		}
		return ending >= 10*samplesPerState && alive > 0
	})
}

// kernelFunction returns where a function of the kernel is.
func kernelFunction(t *testing.T, name string) (start, limit uint64) {
	t.Helper()
	b, err := os.ReadFile("/proc/kallsyms")
	require.NoError(t, err)
	var starts []uint64
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		addr, err := strconv.ParseUint(fields[0], 16, 64)
		require.NoError(t, err)
		starts = append(starts, addr)
		if fields[2] == name {
			start = addr
		}
	}
	require.NotZero(t, start, "the kernel does not tell where %s is", name)
	slices.Sort(starts)
	for _, addr := range starts {
		if addr > start {
			return start, addr
		}
	}
	return start, start + 1
}
