//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// A recursion of known depth: every frame of it, up to the bound.
func TestUserStackDepth(t *testing.T) {
	program := buildTarget(t)
	for _, tc := range []struct{ depth, frames int }{{1, 1}, {50, 50}, {500, 500}, {2000, MaxUserFrames - 1}} {
		t.Run(fmt.Sprint(tc.depth), func(t *testing.T) {
			s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
			tgt := startTarget(t, program, fmt.Sprintf("depth-%d", tc.depth))
			require.NoError(t, s.Start())
			readUntil(t, s, func(r *Record) bool {
				if r.PID != tgt.pid || len(r.KernelFrames) > 0 {
					return false
				}
				require.GreaterOrEqual(t, len(r.UserFrames), tc.frames)
				same := 0
				for _, addr := range r.UserFrames[1:] {
					if addr == r.UserFrames[1] {
						same++
					}
				}
				want := tc.frames
				if tc.depth == 1 {
					want = 1 // the return into main
				}
				require.Equal(t, want, same)
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
			require.Less(t, addr, uint64(1)<<63)
		}
		return true
	})
}
