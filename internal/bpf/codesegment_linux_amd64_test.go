package bpf

import (
	"os/exec"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// What kind of code was running follows from the code segment, of which Xen's guests have
// another one. A tracer gives it to a thread for as long as that is in the kernel.
func TestCodeSegment(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	var segment atomic.Uint64
	segment.Store(0x33)
	pid, ended := make(chan int), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		ended <- traceReader(&segment, pid)
	}()
	reader := <-pid
	require.NotZero(t, reader)
	t.Cleanup(func() {
		_ = syscall.Kill(reader, syscall.SIGKILL)
		require.NoError(t, <-ended)
	})
	require.NoError(t, s.Start())
	start, limit := kernelFunction(t, "vfs_read")
	for _, tc := range []struct {
		segment uint64
		compat  bool
	}{{0x33, false}, {0xe033, false}, {0x23, true}} {
		segment.Store(tc.segment)
		seen, before := 0, 0
		readUntil(t, s, func(r *Record) bool {
			if r.PID != uint32(reader) || len(r.KernelFrames) == 0 {
				return false
			}
			inRead := slices.ContainsFunc(r.KernelFrames, func(addr uint64) bool { return addr >= start && addr < limit })
			compat := labels.Outcome(r.UserStack) == labels.OutcomeCompat
			switch {
			case tc.compat && compat:
				require.Empty(t, r.UserFrames)
			case tc.compat || !inRead:
				return false
			case before < samplesPerState: // the call may have begun before
				before++
				return false
			default:
				require.False(t, compat, "%#x", tc.segment)
				require.NotEmpty(t, r.UserFrames)
			}
			seen++
			return seen == samplesPerState
		})
	}
}

// traceReader runs a program whose system calls take long, with a code segment of our own.
func traceReader(segment *atomic.Uint64, pid chan<- int) error {
	cmd := exec.Command("/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=16M")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		pid <- 0
		return err
	}
	defer cmd.Wait() //nolint:errcheck // it is killed
	pid <- cmd.Process.Pid
	for entry := true; ; entry = !entry {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &status, 0, nil); err != nil || !status.Stopped() {
			return err
		}
		var regs syscall.PtraceRegs
		if err := syscall.PtraceGetRegs(cmd.Process.Pid, &regs); err != nil {
			return nil //nolint:nilerr // it was killed
		}
		regs.Cs = 0x33
		if !entry { // the first stop is that of the exec
			regs.Cs = segment.Load()
		}
		if err := syscall.PtraceSetRegs(cmd.Process.Pid, &regs); err != nil {
			return nil //nolint:nilerr // it was killed
		}
		if err := syscall.PtraceSyscall(cmd.Process.Pid, 0); err != nil {
			return nil //nolint:nilerr // it was killed
		}
	}
}
