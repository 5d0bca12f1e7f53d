//go:build linux && (amd64 || arm64)

package bpf

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// From Linux 7.0 on a task can be preempted within a program that follows processes, and the kernel runs the program
// for nobody else on the CPU meanwhile. Where BPF can prevent that, hardly any process is missed; where it cannot, what
// was missed is counted.
func TestPreemptedPrograms(t *testing.T) {
	testutil.RequireBPF(t)
	for _, preemptible := range []bool{false, true} {
		s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes, preemptible: preemptible})
		require.NoError(t, s.Follow())
		ctx, stop := context.WithCancel(t.Context())
		var others sync.WaitGroup
		others.Go(func() { beginProcesses(t, ctx) })
		begun := 0
		beginUrgentProcesses(t, func(n int) bool {
			missed := recursionMisses(t, s)
			begun = n
			if (preemptible || s.kernel.older) && canPreempt(t) {
				require.Less(t, n, 100_000, "none missed")
				return missed >= 10
			}
			require.LessOrEqual(t, missed, uint64(n/200), "%d begun", n)
			return n == testutil.Size(5_000, 2_000, 1_000)
		})
		withoutRoom, err := s.readCounters(s.objs.Counts) // nobody reads the events
		require.NoError(t, err)
		missed := recursionMisses(t, s)
		c, err := s.Counters()
		require.NoError(t, err)
		require.GreaterOrEqual(t, c.EventsDropped, withoutRoom.EventsDropped+missed)
		t.Logf("%d missed, %d begun (preemptible: %v)", missed, begun, preemptible)
		stop()
		others.Wait()
	}
}

// canPreempt reports whether the kernel can preempt programs of tracepoints.
func canPreempt(t *testing.T) bool {
	t.Helper()
	var major int
	_, err := fmt.Sscanf(release(), " (%d.", &major)
	require.NoError(t, err)
	return major >= 7
}

func recursionMisses(t *testing.T, s *Sampler) (n uint64) {
	t.Helper()
	for _, p := range s.followers() {
		stats, err := p.Stats()
		require.NoError(t, err)
		n += stats.RecursionMisses
	}
	return n
}

// firstCPU is the one on which all happens.
func firstCPU() *unix.CPUSet {
	var one unix.CPUSet
	one.Set(0)
	return &one
}

// beginProcesses begins processes and ends them, until the context ends.
func beginProcesses(t *testing.T, ctx context.Context) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "read go; while :; do (:); done")
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil || unix.SchedSetaffinity(cmd.Process.Pid, firstCPU()) != nil {
		t.Error("cannot begin processes")
		return
	}
	_, _ = in.Write([]byte("\n"))
	_ = cmd.Wait() // killed
}

// beginUrgentProcesses begins processes as a thread that has the CPU at once when it wants it.
func beginUrgentProcesses(t *testing.T, until func(n int) bool) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before))
	require.NoError(t, unix.SchedSetaffinity(0, firstCPU()))
	require.NoError(t, unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0))
	defer func() {
		require.NoError(t, unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0))
		require.NoError(t, unix.SchedSetaffinity(0, &before))
	}()
	for n := 1; ; n++ {
		time.Sleep(time.Duration(n%100) * time.Microsecond)
		require.NoError(t, exec.Command("true").Run())
		if until(n) {
			return
		}
	}
}
