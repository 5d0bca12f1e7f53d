//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"os/exec"
	"runtime"
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

// testThreadPointer starts targets of a state that never give up their CPU after so many execs.
func testThreadPointer(t *testing.T, state string, execs int) {
	program := buildTarget(t)
	offset := startTarget(t, program, "labels-1").offsetV1 // the same in each run
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Follow())
	require.NoError(t, s.Start())
	outcomes := map[record.Outcome]int{}
	done := func() bool {
		return outcomes[record.OutcomePresent] > 0 &&
			(runtime.GOARCH != "arm64" || outcomes[record.OutcomeNoThreadPointer] > 0)
	}
	// Another process on its CPU may switch it out at once: then the next one tells.
	for end := time.Now().Add(time.Minute); !done(); {
		require.True(t, time.Now().Before(end), "outcomes: %v", outcomes)
		known := false
		sampleFresh(t, s, program, state, execs, offset, func(r *Record) bool {
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

// sampleFresh visits the samples of a new process that never gives up its CPU, until
// visit returns true or for as long as a switch should take to come.
func sampleFresh(t *testing.T, s *Sampler, program, state string, execs int, offset int64, visit func(*Record) bool) {
	t.Helper()
	cmd := exec.Command(program, state)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	pid := uint32(cmd.Process.Pid)
	var id record.ProcessID
	for range execs {
		id = awaitExec(t, s, cmd.Process.Pid)
	}
	require.NoError(t, s.SetLabelSources(id, []record.LabelSource{{ABI: record.ABIV1, Offset: offset}}))
	end := time.Now().Add(2 * time.Second)
	readUntil(t, s, func(r *Record) bool {
		ours := r.PID == pid && r.Process == id && len(r.Labels) > 0
		return ours && visit(r) || time.Now().After(end)
	})
}
