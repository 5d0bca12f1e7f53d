//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Frames are followed up to the last word that is mapped, across pages; and those of one
// process are not those of another that was sampled before on the same CPU, with its stack
// at the same addresses.
func TestLinkedFrames(t *testing.T) {
	const samples = 100
	program := buildStacks(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	type frames struct {
		first uint64
		links int
	}
	want := map[uint32]frames{}
	for kind, f := range map[string]frames{"many_links": {0x10000, 120}, "few_links": {0x20000, 4}, "other_links": {0x30000, 4}} {
		pid, _ := startStacks(t, program, kind)
		want[pid] = f
		pin(t, pid, 0)
		require.NoError(t, s.SetUnwindMappings(identify(t, s, pid), nil, execPages(t, pid)))
	}
	require.NoError(t, s.Start())
	seen := map[uint32]int{}
	readUntil(t, s, func(r *Record) bool {
		f, ours := want[r.PID]
		if !ours || seen[r.PID] == 0 && (len(r.UserFrames) == 1 || r.UserFrames[1] != f.first) {
			return false // it has not come that far
		}
		seen[r.PID]++
		require.Equal(t, record.OutcomePresent.String(), r.UserStack.String())
		require.Len(t, r.UserFrames, 1+f.links)
		for i, addr := range r.UserFrames[1:] {
			require.Equal(t, f.first+16*uint64(i), addr, "frame %d", i)
		}
		return len(seen) == len(want) && min(seen[r.PID], samples) == samples
	})
}
