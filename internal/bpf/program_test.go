//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A process begins with the label sources of its program, which its samples call presumed
// until it has got its own.
func TestProgramSources(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Follow())
	program := buildTarget(t)
	first := startTarget(t, program, "labels-1")
	var exec record.Event
	for exec.Kind != record.EventExec || exec.PID != int(first.pid) {
		require.NoError(t, s.ReadEvent(&exec))
	}
	require.NotZero(t, exec.Program)
	sources := []record.LabelSource{{ABI: record.ABIV1, Offset: first.offsetV1}}
	require.NoError(t, s.Start())
	for _, presumed := range []bool{true, false} {
		require.NoError(t, s.SetProgram(exec.Program, sources, presumed))
		next := startTarget(t, program, "labels-1")
		readUntil(t, s, func(r *Record) bool {
			if r.PID != next.pid || len(r.Labels) <= 16 {
				return false
			}
			require.Equal(t, presumed, r.Presumed)
			return true
		})
		require.NoError(t, s.SetLabelSources(identify(t, s, next.pid), sources))
		readUntil(t, s, func(r *Record) bool { return r.PID == next.pid && len(r.Labels) > 16 && !r.Presumed })
	}
	require.NoError(t, s.ForgetProgram(exec.Program))
	require.NoError(t, s.ForgetProgram(exec.Program), "again")
	last := startTarget(t, program, "labels-1")
	readUntil(t, s, func(r *Record) bool {
		require.False(t, r.PID == last.pid && r.Known)
		return r.PID == last.pid
	})
	require.Error(t, s.SetProgram(exec.Program, make([]record.LabelSource, record.MaxLabelSources+1), true))
}
