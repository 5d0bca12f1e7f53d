//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// userAddressEnd is the end of what a process can map that does not ask for more.
const userAddressEnd = 1 << 48

// in tells whether an address is in the function descend of a target.
func (tgt *target) in(addr uint64) bool {
	const longest = 512 // bytes
	return addr >= tgt.descend && addr < tgt.descend+longest
}

// signsReturnAddresses tells whether this CPU has pointer authentication.
func signsReturnAddresses(t *testing.T) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	return runtime.GOARCH == "arm64" && strings.Contains(string(b), " paca ")
}

// A recursion of known depth: every frame of it, up to the bound. On a CPU with
// pointer authentication the same return address has another code in each frame,
// which is not part of it.
func TestUserStackDepth(t *testing.T) {
	program := buildTarget(t)
	signs := signsReturnAddresses(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	for _, tc := range []struct{ depth, frames int }{{1, 1}, {50, 50}, {500, 500}, {2000, MaxUserFrames - 1}} {
		t.Run(fmt.Sprint(tc.depth), func(t *testing.T) {
			tgt := startTarget(t, program, fmt.Sprintf("depth-%d", tc.depth))
			if signs {
				// a code is 0 by chance now and then
				require.GreaterOrEqual(t, tgt.signedFrames, tc.depth*3/4)
				fmt.Printf("signed return addresses: %d of %d\n", tgt.signedFrames, tc.depth+1)
			} else {
				require.Zero(t, tgt.signedFrames)
			}
			var down unix.Timespec // it has printed, so it is at the end of its way
			require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &down))
			readUntil(t, s, func(r *Record) bool {
				if r.PID != tgt.pid || r.TimeNs < uint64(down.Nano()) {
					return false
				}
				// While it returns from printing, frames are those of libc, which has no frame pointers.
				if len(r.KernelFrames) > 0 || !tgt.in(r.UserFrames[0]) {
					return false
				}
				same := 0
				for _, addr := range r.UserFrames[1:] {
					require.Less(t, addr, uint64(userAddressEnd))
					if addr == r.UserFrames[1] {
						same++
					}
				}
				require.Equal(t, tc.frames, same)
				require.Equal(t, tc.depth > MaxUserFrames, labels.Outcome(r.UserStack) == labels.OutcomeTruncated)
				return true
			})
		})
	}
}

// A thread inside the kernel has both stacks.
func TestKernelStack(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "in-kernel")
	require.NoError(t, s.Start())
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid || len(r.KernelFrames) == 0 {
			return false
		}
		for _, addr := range r.KernelFrames {
			require.Greater(t, addr, uint64(1)<<63)
		}
		require.NotEmpty(t, r.UserFrames)
		for _, addr := range r.UserFrames {
			require.Less(t, addr, uint64(1)<<56)
		}
		return true
	})
}
