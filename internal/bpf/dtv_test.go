//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Every state of a thread's table of TLS blocks (DTV), as testdata/bpf/dtv.h makes it.
func TestDTVStates(t *testing.T) {
	const module, generation, offset = 2, 7, 24 // of the variable there
	glibc, musl := record.TLSDTVGlibc, record.TLSDTVMusl
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	for _, tc := range []struct {
		state string
		kind  record.TLSKind
		want  record.Outcome
	}{
		{"glibc-right", glibc, record.OutcomePresent},
		{"glibc-young", glibc, record.OutcomePresent},
		{"glibc-none", glibc, record.OutcomeNotAllocated},
		{"glibc-unmapped", glibc, record.OutcomeFault},
		{"glibc-short", glibc, record.OutcomeNotAllocated},
		{"glibc-old", glibc, record.OutcomeStaleModule},
		{"glibc-untouched", glibc, record.OutcomeNotAllocated},
		{"glibc-zero", glibc, record.OutcomeNotAllocated},
		{"glibc-lost-block", glibc, record.OutcomeFault},
		{"glibc-no-pointer", glibc, record.OutcomeNoThreadPointer},
		{"musl-right", musl, record.OutcomePresent},
		{"musl-none", musl, record.OutcomeNotAllocated},
		{"musl-unmapped", musl, record.OutcomeFault},
		{"musl-short", musl, record.OutcomeNotAllocated},
		{"musl-untouched", musl, record.OutcomeNotAllocated},
		{"musl-lost-block", musl, record.OutcomeFault},
	} {
		t.Run(tc.state, func(t *testing.T) {
			tgt := startTarget(t, program, "dtv-"+tc.state)
			src := record.LabelSource{ABI: record.ABIV1, Kind: tc.kind, Module: module, Offset: offset}
			if tc.kind == glibc {
				src.Generation = generation
			}
			require.NoError(t, s.SetLabelSources(identify(t, s, tgt.pid), []record.LabelSource{src}))
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.PID != tgt.pid || len(r.Labels) == 0 {
					return false
				}
				d := labels.Decode(nil, r.Labels)
				require.Len(t, d.Reads, 1)
				require.Equal(t, tc.want.String(), d.Reads[0].Outcome.String())
				if tc.want == record.OutcomePresent {
					require.Equal(t, "k0=v0", show(d.Set))
				} else {
					require.Zero(t, d.Set.Len())
				}
				seen++
				return seen == samplesPerState
			})
		})
	}
}
