//go:build linux && (amd64 || arm64)

package pipeline

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// noise is a text that is in no other one.
func noise(r *rand.Rand, bytes int) string {
	b := make([]byte, bytes)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return string(b)
}

// A batch is split into requests that receivers take. What cannot be split is dropped with a
// reason and not emitted; nobody else loses anything.
func TestRequestsBounded(t *testing.T) {
	e, out := testOutput(func(o *Options) { o.Batches.MaxRequestBytes = 8 << 10 })
	b := e.newBatch(e.cpu)
	b.endMono = b.startMono + 1
	r := rand.New(rand.NewPCG(1, 2))
	add := func(uid uint32, process uint64, valueBytes int) {
		set := labels.NewSet(false, labels.Label{Key: "key", Value: noise(r, valueBytes), Source: record.ABIV1})
		b.add(b.user(uid), &profile.Sample{Process: process, TimeUnixNano: b.startMono + b.clockOffset, Set: set})
	}
	add(10, 10, 9<<10)
	for i := range 100 {
		add(10, 1000+uint64(i), 1<<10)
	}
	fill(b, 20, 7, "quiet")
	e.export(b)
	samples := 0
	for _, call := range out.calls {
		samples += call.samples
		require.LessOrEqual(t, len(call.text), 8<<10)
	}
	require.True(t, bytes.Contains(out.calls[0].text, []byte("quiet")), "who has little comes first")
	require.Equal(t, 107, samples)
	require.EqualValues(t, 107, e.cpu.emitted.Load())
	require.EqualValues(t, 1, e.cpu.dropped[DropTooLarge].Load())
	require.Less(t, len(out.calls), 40)
}
