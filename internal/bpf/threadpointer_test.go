//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A new process that nothing makes wait. Its thread pointer is not known until its
// loader has set it, and on aarch64 until it is switched out for the first time: an
// outcome of its own, for which its labels are never mistaken. Once known, it stays.
func TestThreadPointerNotKnownYet(t *testing.T) {
	testThreadPointer(t, "never-switched", 1)
}

// Until then, what the kernel has saved on aarch64 is the thread pointer of the program before. Here there are labels at
// it in the new one, too: they are not read.
func TestThreadPointerOfProgramBefore(t *testing.T) {
	testThreadPointer(t, "pointer-before", 3)
}

// The same of a thread that leaves the CPU for the first time: its pointer has not been saved yet.
func TestSwitchThreadPointerOfProgramBefore(t *testing.T) {
	program := buildTarget(t)
	offset := startTarget(t, program, "labels-1").offsetV1
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: 64 << 20})
	s := o.sampler
	require.NoError(t, s.Follow())
	knowProgram(t, s, program, record.LabelSource{ABI: record.ABIV1, Offset: offset})
	require.NoError(t, o.Start())
	const times = 3
	started := map[record.ProcessID]bool{}
	for range times {
		cmd, id := startAndAwait(t, s, program, "pointer-before", 3)
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
		awaitState(t, cmd.Process.Pid, "T")
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		started[id] = true
	}
	first := map[record.ProcessID]record.Outcome{}
	drainSwitches(t, o, func(sw *Switch) {
		if sw.Back {
			return
		}
		var r Record
		require.NoError(t, r.Parse(append([]byte(nil), sw.Raw...)))
		if !started[r.Process] || len(r.Labels) == 0 {
			return // it is still executing
		}
		d := labels.Decode(nil, r.Labels)
		require.Len(t, d.Reads, 1)
		require.NotContains(t, show(d.Set), "decoy")
		if _, ok := first[r.Process]; !ok {
			first[r.Process] = d.Reads[0].Outcome
		}
	})
	require.Len(t, first, times)
	for _, outcome := range first {
		if runtime.GOARCH == "arm64" {
			require.Equal(t, record.OutcomeNoThreadPointer, outcome)
		}
	}
}

// testThreadPointer starts targets of a state that never give up their CPU after so many execs.
func testThreadPointer(t *testing.T, state string, execs int) {
	program := buildTarget(t)
	offset := startTarget(t, program, "labels-1").offsetV1 // the same in each run
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Follow())
	require.NoError(t, s.Start())
	knowProgram(t, s, program, record.LabelSource{ABI: record.ABIV1, Offset: offset})
	outcomes := map[record.Outcome]int{}
	done := func() bool {
		return outcomes[record.OutcomePresent] > 0 &&
			(runtime.GOARCH != "arm64" || outcomes[record.OutcomeNoThreadPointer] > 0)
	}
	// Another process on its CPU may switch it out at once: then the next one tells.
	for end := time.Now().Add(time.Minute); !done(); {
		require.True(t, time.Now().Before(end), "outcomes: %v", outcomes)
		known := false
		sampleFresh(t, s, program, state, execs, func(r *Record) bool {
			d := labels.Decode(nil, r.Labels)
			require.Len(t, d.Reads, 1)
			outcomes[d.Reads[0].Outcome]++
			switch d.Reads[0].Outcome {
			case record.OutcomeNone: // before main has set them
				require.Zero(t, d.Set.Len())
			case record.OutcomeNoThreadPointer:
				require.Zero(t, d.Set.Len())
				require.False(t, known)
				return false
			default:
				require.Equal(t, record.OutcomePresent, d.Reads[0].Outcome)
				require.Equal(t, "k0=v0", show(d.Set))
			}
			known = true
			return done()
		})
	}
	t.Logf("outcomes: %v", outcomes)
	compared := 0
	for _, n := range outcomes {
		compared += n
	}
	testutil.ReportLabelAssertions(t.Name(), compared)
}

// knowProgram has processes of a program have a source from their first instant.
func knowProgram(t *testing.T, s *Sampler, program string, source record.LabelSource) {
	t.Helper()
	cmd := exec.Command(program)
	require.Error(t, cmd.Run())
	for ev := (record.Event{}); ; {
		require.NoError(t, readEvent(s, &ev))
		if ev.Kind == record.EventExec && ev.PID == cmd.Process.Pid {
			require.NoError(t, s.SetProgram(ev.Program, []record.LabelSource{source}, false))
			return
		}
	}
}

// sampleFresh visits the samples of a new process that never gives up its CPU, until
// visit returns true or for as long as a switch should take to come.
func sampleFresh(t *testing.T, s *Sampler, program, state string, execs int, visit func(*Record) bool) {
	t.Helper()
	cmd, id := startAndAwait(t, s, program, state, execs)
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	pid := uint32(cmd.Process.Pid)
	end := time.Now().Add(2 * time.Second)
	readUntil(t, s, func(r *Record) bool {
		ours := r.PID == pid && r.Process == id && len(r.Labels) > 0
		return ours && visit(r) || time.Now().After(end)
	})
}

// startAndAwait starts a target, and returns what it is after so many execs.
func startAndAwait(t *testing.T, s *Sampler, program, state string, execs int) (cmd *exec.Cmd, id record.ProcessID) {
	t.Helper()
	cmd = exec.Command(program, state)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	for range execs {
		id = awaitExec(t, s, cmd.Process.Pid)
	}
	return cmd, id
}
