package unwind

import (
	"debug/elf"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What is described first stays alone in its addresses, also inside of a long function
// behind a short one; the rest fills gaps.
func TestKeepGaps(t *testing.T) {
	of := func(start, end uint32) span { return span{start: start, bytes: end - start} }
	first := []span{of(110, 120), of(100, 200), of(300, 310)}
	kept := []span{of(0, 100), of(200, 300), of(310, 320)}
	dropped := []span{of(90, 101), of(150, 160), of(199, 201), of(115, 116), of(250, 400), of(0, 500)}
	b := builder{spans: append(append([]span{}, first...), dropped[0], kept[0], dropped[1], dropped[2], kept[1], dropped[3], dropped[4], kept[2], dropped[5])}
	require.NoError(t, b.keepGaps(len(first)))
	require.Equal(t, append(first, kept...), b.spans)
}

// What it takes to tell which is which is told, where there is something to tell.
func TestKeepGapsHolds(t *testing.T) {
	const known = 1000
	refused := errors.New("refused")
	asked := 0
	b := builder{spans: make([]span, known)}
	b.limits.Hold = func(h Held) error {
		asked++
		require.GreaterOrEqual(t, h.Heap, 24*known)
		return refused
	}
	require.NoError(t, b.keepGaps(known))
	require.Zero(t, asked)
	b.spans = append(b.spans, span{start: 7})
	require.Equal(t, refused, b.keepGaps(known))
	require.Equal(t, 1, asked)
}

// Where a function of Go has a frame, the caller's frame register is in it.
func TestGoRule(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		delta   int32
		want    record.UnwindRule
	}{
		{elf.EM_X86_64, 0, record.UnwindRule{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8}},
		{elf.EM_X86_64, 48, record.UnwindRule{CFA: record.CFASP, CFAOffset: 56, RAOffset: -8, FP: record.FPOffset, FPOffset: -16}},
		{elf.EM_AARCH64, 0, record.UnwindRule{CFA: record.CFASP, RA: record.RARegister}},
		{elf.EM_AARCH64, 48, record.UnwindRule{CFA: record.CFASP, CFAOffset: 48, RAOffset: -48, FP: record.FPOffset, FPOffset: -56}},
	} {
		require.Equal(t, c.want, goRule(c.machine, c.delta))
	}
	require.Equal(t, record.UnwindRule{CFA: record.CFASP, RA: record.RARegister}, crosscallRule(0))
	require.Equal(t, record.UnwindRule{CFA: record.CFASP, CFAOffset: 192, RAOffset: -8, FP: record.FPOffset, FPOffset: -16}, crosscallRule(192))
}
