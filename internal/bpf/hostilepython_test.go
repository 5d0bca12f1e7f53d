//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A stack of a thread that runs functions which cannot be read is cut, whole as its native frames
// are. A thread that runs none has a whole one.
func TestUnreadablePythonFrames(t *testing.T) {
	program := filepath.Join(t.TempDir(), "python")
	out, err := exec.Command("gcc", "-O2", "-o", program, "../../testdata/bpf/python.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20, FramePointersOnly: true})
	needFileNames(t, s) // as kernels do in which runtimes are walked
	require.NoError(t, s.Start())
	for kind, want := range map[string]record.Outcome{
		"unreadable": record.OutcomeTruncated, "no_code": record.OutcomeTruncated, "other": record.OutcomePresent,
	} {
		t.Run(kind, func(t *testing.T) {
			var pid uint32
			var interpreters uint64
			_, err := fmt.Sscan(startProgram(t, program, kind), &pid, &interpreters)
			require.NoError(t, err)
			id := identify(t, s, pid)
			require.NoError(t, s.SetRuntime(id, record.RuntimeProcess{Kind: record.RuntimeCPython, Python: record.PythonProcess{
				Interpreters: interpreters, InterpreterThreads: 8, ThreadNativeID: 8, ThreadFrame: 16,
				FrameCode: 8, FrameInstruction: 16, FrameOwner: 24,
			}}))
			require.NoError(t, s.SetUnwindMappings(id, nil, 0))
			var told unix.Timespec
			require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &told))
			before, err := s.Counters()
			require.NoError(t, err)
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.PID != pid || r.TimeNs < uint64(told.Nano()) || len(r.KernelFrames) > 0 {
					return false
				}
				seen++
				require.Equal(t, want.String(), r.UserStack.String())
				require.Len(t, r.UserFrames, 1)
				return seen > 30
			})
			after, err := s.Counters()
			require.NoError(t, err)
			if want == record.OutcomeTruncated {
				require.Greater(t, after.RuntimeInvalid, before.RuntimeInvalid)
			} else {
				require.Greater(t, after.RuntimeNoThread, before.RuntimeNoThread)
			}
			require.NoError(t, s.ForgetMappings(id))
		})
	}
}
