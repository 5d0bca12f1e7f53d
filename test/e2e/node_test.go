//go:build linux && amd64

package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	nodeRate = 997 // samples a second
	nodeLoad = 6 * time.Second

	// What a version must show to have been tested.
	nodeMinSamples = 300
	nodeMinWorker  = 50   // of a worker thread
	nodeMinLinked  = 0.95 // of the samples while a request burned, after nodeFound
	// nodeFound is the time in which the process context must have been found.
	nodeFound = time.Second
)

// TestRealWriterNode: HTTP servers on the Node.js of three releases, with contexts made
// by dd-trace and by @datadog/pprof alone. The link of each sample is that of the
// request that the server's log has at that instant, or for a worker thread of what it
// did itself.
func TestRealWriterNode(t *testing.T) {
	for _, writer := range []string{"dd-trace", "pprof"} {
		for _, release := range []string{"22", "24", "26"} {
			t.Run(writer+"/"+release, func(t *testing.T) { testNode(t, writer, release, nodeLoad) })
		}
	}
}

// nodeTally counts the samples of a server.
type nodeTally struct {
	linked, early, missing int // while a request burned: with its link, without it at first, and later
	between                int // with the link of a request that was active
	worker, plain          int // on other threads: in a context, and out of any
	wrong                  int
}

func testNode(t *testing.T, writer, release string, load time.Duration) (checked, wrong int) {
	var hits []hit
	out := &sink{t: t, visit: func(b flatBatch) { hits = append(hits, b.hits...) }}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = nodeRate
		c.Symbolize = customlabelsreceiver.SymbolizeNone
	})
	server := startNode(t, writer, release)
	requests := server.load(t, load)
	log := server.end(t)
	r.stop()

	var n nodeTally
	found := log.main["burn"][0].start + uint64(nodeFound)
	for i := range hits {
		h := &hits[i]
		if h.pid != int64(server.pid) {
			continue
		}
		if h.link != (link{}) {
			require.Equal(t, "shop-"+writer, h.resource["service.name"])
		}
		tid, err := strconv.Atoi(h.attrs["thread.id"])
		require.NoError(t, err)
		if tid == server.pid {
			n.check(t, h, log.main, found)
		} else {
			n.checkWorker(t, h, log.threads[tid], found)
		}
	}
	fmt.Printf("%-8s on Node.js %s: %d requests; %d samples while one burned: %d with its link, %d without (and %d in the first second); %d linked samples between; worker threads: %d in a context of theirs, %d in none; %d mismatches\n",
		writer, release, requests, n.linked+n.missing+n.early, n.linked, n.missing, n.early, n.between, n.worker, n.plain, n.wrong)
	require.Zero(t, n.wrong)
	require.Greater(t, n.linked, nodeMinSamples)
	require.Greater(t, n.plain, nodeMinWorker)
	require.Equal(t, writer == "pprof", n.worker > nodeMinWorker, n.worker)
	require.Greater(t, float64(n.linked)/float64(n.linked+n.missing), nodeMinLinked)
	checked = n.linked + n.between + n.worker + n.plain
	testutil.ReportLabelAssertions(t.Name(), checked)
	return checked, n.wrong
}

// check checks a sample of the thread that serves requests.
func (n *nodeTally) check(t *testing.T, h *hit, spans map[string][]nodeSpan, foundNs uint64) {
	linked := h.link != link{}
	burn := spanAt(spans["burn"], h.timeUnixNano, clockSlack)
	switch {
	case burn != nil && !linked && h.timeUnixNano < foundNs:
		n.early++
	case burn != nil && !linked:
		n.missing++
	case burn != nil:
		n.linked++
		if !burn.linked(h) || !burn.attributed(h) {
			n.wrong++
			t.Logf("%v instead of %+v", h, *burn)
		}
	case linked:
		n.between++
		if s := active(spans["request"], h); s == nil || !s.attributed(h) {
			n.wrong++
			t.Logf("%v is of no request that was active: %s", h.attrs, explain(spans["request"], h))
		}
	}
}

// checkWorker checks a sample of another thread, which may have nothing in common with
// JavaScript. It has no link but of contexts of its own.
func (n *nodeTally) checkWorker(t *testing.T, h *hit, spans map[string][]nodeSpan, foundNs uint64) {
	linked := h.link != link{}
	burn := spanAt(spans["burn"], h.timeUnixNano, clockSlack)
	switch {
	case burn != nil && linked:
		n.worker++
		if !burn.linked(h) || !burn.attributed(h) {
			n.wrong++
			t.Logf("%v on a worker thread instead of %+v", h, *burn)
		}
	case burn != nil && h.timeUnixNano >= foundNs:
		n.missing++
	case linked && active(spans["request"], h) == nil,
		linked && spanAt(spans["plain"], h.timeUnixNano, clockSlack) != nil:
		n.wrong++
		t.Logf("%v on a worker thread is of nothing that it did: %s", h.attrs, explain(spans["request"], h))
	case linked:
		n.between++
	case spanAt(spans["plain"], h.timeUnixNano, clockSlack) != nil:
		n.plain++
	}
}
