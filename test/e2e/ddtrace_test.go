//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

var ddSamples = size(10_000, 1000, 1000)

// TestRealWriterDDTraceGo: a service traced by dd-trace-go. Each sample of a request
// has the ids of a span that the service logged, one of those that ran the function
// in which the sample was taken at that time, and the resource that dd-trace-go publishes.
func TestRealWriterDDTraceGo(t *testing.T) {
	testutil.RequireBPF(t)
	w := startDDWriter(t, buildDDWriter(t))

	var hits []hit
	atWork := 0
	found := false // by the receiver: what comes after a batch that has all of the program
	out := &sink{t: t, visit: func(b flatBatch) {
		before := found
		for i := range b.hits {
			h := &b.hits[i]
			switch {
			case h.pid != int64(w.cmd.Process.Pid):
			case before:
				hits = append(hits, *h)
				if ddFunction(h) != "" {
					atWork++
				}
			default:
				found = found || h.attrs[prefix+"span id"] != "" && h.resource["service.name"] != ""
			}
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 1999
		c.ReportInterval = 500 * time.Millisecond
	})
	awaitCount(t, &out.mu, "samples of the program at work", ddSamples*5/4, func() int { return atWork })
	r.stop() // before the program ends: all that is sampled gets logged
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, w.cmd.Wait())

	log := w.read(t)
	checked, mismatches := 0, 0
	for i := range hits {
		h := &hits[i]
		spans := log.at(h)
		if len(spans) == 0 {
			continue
		}
		checked++
		id := h.attrs[prefix+"span id"]
		good := assert.True(t, slices.ContainsFunc(spans, func(s ddSpan) bool { return s.id == id }), "no span %q ran then", id) &&
			assert.Equal(t, "GET /", h.attrs[prefix+"trace endpoint"]) &&
			assert.Equal(t, "dd-shop", h.resource["service.name"])
		if !good {
			mismatches++
		}
	}
	fmt.Printf("dd-trace-go: %d spans, %d samples checked, %d mismatches\n", len(log.spans), checked, mismatches)
	require.Zero(t, mismatches)
	require.GreaterOrEqual(t, checked, ddSamples)
	testutil.ReportLabelAssertions(t.Name(), checked)
}
