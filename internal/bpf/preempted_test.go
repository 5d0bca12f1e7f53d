//go:build linux && (amd64 || arm64)

package bpf

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// From Linux 7.0 on a task can be preempted within a program that follows processes, and the kernel does not run the
// program for others on that CPU meanwhile: what they do is counted.
func TestPreemptedPrograms(t *testing.T) {
	testutil.RequireBPF(t)
	can, most := canPreempt(t), 500
	if can {
		most = 20_000
	}
	for _, preemptible := range []bool{false, true} {
		s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes, preemptible: preemptible})
		require.NoError(t, s.Follow())
		begun, missed := 0, uint64(0)
		atOnce(t, func() bool {
			begun++
			missed = eventsMissed(t, s)
			return missed > 0 || begun == most
		})
		t.Logf("%d missed, %d processes begun (preemptible: %v)", missed, begun, preemptible)
		require.Equal(t, can, missed > 0)
		c, err := s.Counters()
		require.NoError(t, err)
		require.GreaterOrEqual(t, c.EventsMissed, missed)
	}
}

// What is asked of the kernel for a program is what it says.
func TestProgramInfo(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 97, RingBufferBytes: MinRingBufferBytes})
	counting, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	require.NoError(t, s.Start())
	readUntil(t, s, func(*Record) bool { return true })
	require.NoError(t, s.Stop())
	require.NoError(t, counting.Close())
	want, err := s.objs.SampleCpu.Info()
	require.NoError(t, err)
	id, ok := want.ID()
	require.True(t, ok)
	counts, err := s.objs.SampleCpu.Stats()
	require.NoError(t, err)
	got, err := infoOf(s.objs.SampleCpu)
	require.NoError(t, err)
	require.EqualValues(t, id, got.id)
	require.NotZero(t, got.runs)
	require.Equal(t, counts.RunCount, got.runs)
	require.Equal(t, counts.RecursionMisses, got.misses)
}

func eventsMissed(t *testing.T, s *Sampler) (n uint64) {
	t.Helper()
	for _, p := range s.followers() {
		stats, err := p.Stats()
		require.NoError(t, err)
		n += stats.RecursionMisses
	}
	return n
}

// canPreempt reports whether the kernel can preempt programs of tracepoints: with CONFIG_PREEMPT_RCU.
func canPreempt(t *testing.T) bool {
	t.Helper()
	var major int
	_, err := fmt.Sscanf(release(), " (%d.", &major)
	require.NoError(t, err)
	names, err := os.ReadFile("/proc/kallsyms")
	require.NoError(t, err)
	return major >= 7 && strings.Contains(string(names), " __rcu_read_lock\n")
}

// atOnce begins processes on a CPU on which others begin as well, as a thread that has the CPU at once when it wants
// it, until it has been enough.
func atOnce(t *testing.T, enough func() bool) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before))
	cpu := 0
	for !before.IsSet(cpu) {
		cpu++
	}
	one.Set(cpu)
	defer func() {
		require.NoError(t, unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0))
		require.NoError(t, unix.SchedSetaffinity(0, &before))
	}()
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	others.Go(func() { beginProcesses(ctx, t, &one) })
	require.NoError(t, unix.SchedSetaffinity(0, &one))
	require.NoError(t, unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0))
	for n := 0; !enough(); n++ {
		time.Sleep(time.Duration(n%100) * time.Microsecond)
		require.NoError(t, exec.Command("true").Run())
	}
}

// beginProcesses begins processes and ends them, until the context ends.
func beginProcesses(ctx context.Context, t *testing.T, on *unix.CPUSet) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "read go; while :; do (:); done")
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil || unix.SchedSetaffinity(cmd.Process.Pid, on) != nil {
		t.Error("cannot begin processes")
		return
	}
	_, _ = in.Write([]byte("\n"))
	_ = cmd.Wait() // killed
}
