//go:build linux && (amd64 || arm64)

package bpf

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// While the kernel maps a program, the thread is the new process, and its registers are those of the
// program before: no address of that one is in the new one's stacks.
func TestSampleOfExec(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 4999, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	ctx, stop := context.WithCancel(t.Context())
	var programs sync.WaitGroup
	programs.Go(func() {
		for ctx.Err() == nil {
			if err := exec.Command("true").Run(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer programs.Wait()
	defer stop()
	without := 0
	readUntil(t, s, func(r *Record) bool {
		if string(r.Comm) != "true" || len(r.KernelFrames) == 0 {
			return false
		}
		if len(r.UserFrames) == 0 {
			if r.UserStack == record.OutcomePresent {
				without++
			}
			return without > 20
		}
		// Go makes system calls in one place, and "true" is not of Go.
		if of := runtime.FuncForPC(uintptr(r.UserFrames[0])); of != nil {
			require.False(t, strings.HasSuffix(of.Name(), "syscall.Syscall6"), "%#x of %s", r.UserFrames[0], of.Name())
		}
		return false
	})
}
