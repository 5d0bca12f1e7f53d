package bpf

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What kind of code was running follows from the code segment, of which Xen's guests have
// another one. A tracer gives it to a thread for as long as that is in the kernel.
func TestCodeSegment(t *testing.T) {
	inRead := kernelFunctions(t, "vfs_read")
	for _, tc := range []struct {
		segment uint64
		compat  bool
	}{{0x33, false}, {0xe033, false}, {0x23, true}, {0xe023, true}} {
		t.Run(fmt.Sprintf("%#x", tc.segment), func(t *testing.T) {
			s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
			require.NoError(t, s.Start())
			traced, ended := make(chan tracedReader), make(chan error, 1)
			go func() {
				runtime.LockOSThread() // which is the tracer
				ended <- traceReader(tc.segment, traced)
			}()
			reader := <-traced
			if reader.pid == 0 {
				require.NoError(t, <-ended)
			}
			t.Cleanup(func() {
				_ = syscall.Kill(reader.pid, syscall.SIGKILL)
				<-ended
			})
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.PID != uint32(reader.pid) || r.TimeNs < reader.sinceNs || !slices.ContainsFunc(r.KernelFrames, inRead) {
					return false
				}
				require.Equal(t, tc.compat, r.UserStack == record.OutcomeCompat)
				require.Equal(t, tc.compat, len(r.UserFrames) == 0)
				seen++
				return seen == samplesPerState
			})
		})
	}
}

// tracedReader is a program that is in a call since a time.
type tracedReader struct {
	pid     int
	sinceNs uint64
}

// traceReader starts a program that reads much at a time and tells when it is in that call,
// with a code segment of our own. It ends when the call or the program does.
func traceReader(segment uint64, traced chan<- tracedReader) error {
	const size, read = 1 << 30, 0
	cmd := exec.Command("/bin/dd", "if=/dev/zero", "of=/dev/null", fmt.Sprintf("bs=%d", size))
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		traced <- tracedReader{}
		return err
	}
	end := func(err error) error {
		traced <- tracedReader{}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return err
	}
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &status, 0, nil); err != nil || !status.Stopped() {
			return end(fmt.Errorf("wait: %w, status %#x", err, status))
		}
		var regs syscall.PtraceRegs
		if err := syscall.PtraceGetRegs(cmd.Process.Pid, &regs); err != nil {
			return end(err)
		}
		entered := regs.Orig_rax == read && regs.Rdx == size
		if entered {
			regs.Cs = segment
			if err := syscall.PtraceSetRegs(cmd.Process.Pid, &regs); err != nil {
				return end(err)
			}
		}
		var since unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &since); err != nil {
			return end(err)
		}
		if err := syscall.PtraceSyscall(cmd.Process.Pid, 0); err != nil {
			return end(err)
		}
		if entered {
			traced <- tracedReader{pid: cmd.Process.Pid, sinceNs: uint64(since.Nano())}
			return cmd.Wait()
		}
	}
	return end(syscall.ETIMEDOUT)
}
