//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// Every state of a thread's table of TLS blocks (DTV), as testdata/bpf/dtv.h makes it.
func TestDTVStates(t *testing.T) {
	const module, generation, offset = 2, 7, 24 // of the variable there
	glibc, musl := uint8(profilerTlsKindTLS_KIND_DTV_GLIBC), uint8(profilerTlsKindTLS_KIND_DTV_MUSL)
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	cache := labels.NewCache(1 << 20)
	for _, tc := range []struct {
		state string
		kind  uint8
		want  labels.Outcome
	}{
		{"glibc-right", glibc, labels.OutcomePresent},
		{"glibc-young", glibc, labels.OutcomePresent},
		{"glibc-none", glibc, labels.OutcomeNotAllocated},
		{"glibc-unmapped", glibc, labels.OutcomeFault},
		{"glibc-short", glibc, labels.OutcomeNotAllocated},
		{"glibc-old", glibc, labels.OutcomeStaleModule},
		{"glibc-untouched", glibc, labels.OutcomeNotAllocated},
		{"glibc-zero", glibc, labels.OutcomeNotAllocated},
		{"glibc-lost-block", glibc, labels.OutcomeFault},
		{"glibc-no-pointer", glibc, labels.OutcomeNoThreadPointer},
		{"musl-right", musl, labels.OutcomePresent},
		{"musl-none", musl, labels.OutcomeNotAllocated},
		{"musl-unmapped", musl, labels.OutcomeFault},
		{"musl-short", musl, labels.OutcomeNotAllocated},
		{"musl-untouched", musl, labels.OutcomeNotAllocated},
		{"musl-lost-block", musl, labels.OutcomeFault},
	} {
		t.Run(tc.state, func(t *testing.T) {
			tgt := startTarget(t, program, "dtv-"+tc.state)
			src := LabelSource{ABI: uint8(labels.ABIV1), Kind: tc.kind, Module: module, Offset: offset}
			if tc.kind == glibc {
				src.Generation = generation
			}
			require.NoError(t, s.SetLabelSources(identify(t, s, tgt.pid), []LabelSource{src}))
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.PID != tgt.pid || !r.Known {
					return false
				}
				d := cache.Decode(nil, r.Labels)
				require.Len(t, d.Reads, 1)
				require.Equal(t, tc.want.String(), d.Reads[0].Outcome.String())
				if tc.want == labels.OutcomePresent {
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
