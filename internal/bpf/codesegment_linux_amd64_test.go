package bpf

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
			traced, goOn, ended := make(chan int, 2), make(chan struct{}), make(chan error, 1)
			goes := sync.OnceFunc(func() { close(goOn) })
			go func() {
				runtime.LockOSThread() // which is the tracer
				ended <- traceReader(tc.segment, traced, goOn)
			}()
			reader := <-traced
			if reader == 0 {
				require.NoError(t, <-ended)
			}
			t.Cleanup(func() {
				_ = syscall.Kill(reader, syscall.SIGKILL)
				goes()
				<-ended
			})
			require.NoError(t, s.Start()) // only now: the program reads once, when the ring buffer has to have room
			goes()
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.PID != uint32(reader) || !slices.ContainsFunc(r.KernelFrames, inRead) {
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

// traceReader starts a program that reads much at a time, tells its PID when it is about to do so, with a code segment
// of our own, and has it go on when it is told. It ends when the call or the program does.
func traceReader(segment uint64, traced chan<- int, goOn <-chan struct{}) error {
	const size, read = 1 << 30, 0
	cmd := exec.Command("/bin/dd", "if=/dev/zero", "of=/dev/null", fmt.Sprintf("bs=%d", size))
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		traced <- 0
		return err
	}
	end := func(err error) error {
		traced <- 0
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
			traced <- cmd.Process.Pid
			<-goOn
		}
		if err := syscall.PtraceSyscall(cmd.Process.Pid, 0); err != nil {
			return end(err)
		}
		if entered {
			return cmd.Wait()
		}
	}
	return end(syscall.ETIMEDOUT)
}
