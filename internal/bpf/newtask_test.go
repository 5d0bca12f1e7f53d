//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A child that has just been made has its maker's registers. With a stack of its own it
// has no caller; else its callers are those of its maker.
func TestNewTaskStacks(t *testing.T) {
	program := buildStacks(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	for kind, own := range map[string]bool{
		"thread": true, "thread_musl": true, "thread3": true, // by clone, and by clone3
		"spawned": true, "spawned3": true, "container": true,
		"forked": false, "forked3": false, "vforked": false, "vforked3": false,
	} {
		t.Run(kind, func(t *testing.T) {
			maker, start := startStacks(t, program, kind)
			inKind := func(addr uint64) bool { return addr-start < stacksBytes }
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.TID == maker || len(r.UserFrames) == 0 || !inKind(r.UserFrames[0]) {
					return false
				}
				outcome := r.UserStack
				if own {
					require.Len(t, r.UserFrames, 1)
					require.Equal(t, record.OutcomePresent.String(), outcome.String())
				} else if len(r.UserFrames) > 1 {
					require.GreaterOrEqual(t, len(r.UserFrames), 3)
					require.True(t, inKind(r.UserFrames[1]))
				} else { // its copy of the stack may not be there yet
					require.NotEqual(t, record.OutcomePresent.String(), outcome.String())
					return false
				}
				seen++
				return seen > 30
			})
		})
	}
}

// The same where such a thread leaves the CPU.
func TestNewTaskSwitches(t *testing.T) {
	program := buildStacks(t)
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: 64 << 20})
	require.NoError(t, o.Start())
	maker, start := startStacks(t, program, "thread")
	var sw Switch
	seen, stopped := 0, false
	for end, toggle := time.Now().Add(time.Minute), time.Now(); seen < 3; {
		now := time.Now()
		require.True(t, now.Before(end), "the thread was not seen to leave the CPU")
		if now.After(toggle) {
			signal := map[bool]syscall.Signal{false: syscall.SIGSTOP, true: syscall.SIGCONT}[stopped]
			require.NoError(t, syscall.Kill(int(maker), signal))
			stopped, toggle = !stopped, now.Add(time.Millisecond)
		}
		err := o.Read(&sw)
		if errors.Is(err, ErrIdle) || err == nil && sw.Back {
			continue
		}
		require.NoError(t, err)
		var r Record
		require.NoError(t, r.Parse(sw.Raw))
		if r.PID != maker || r.TID == maker || len(r.UserFrames) == 0 || r.UserFrames[0]-start >= stacksBytes {
			continue
		}
		require.Len(t, r.UserFrames, 1)
		require.Equal(t, record.OutcomePresent.String(), r.UserStack.String())
		seen++
	}
}
