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

// What a version must show to have been tested.
var (
	nodeMinSamples = size(5000, 300, 300) // with a link, of the thread that serves
	nodeMinWorker  = size(500, 50, 50)    // of worker threads
)

const (
	nodeRate      = 1999 // samples a second
	nodeMinLinked = 0.95 // of the samples while a request burned, after nodeFound
	nodeLoad      = time.Second
	nodeMaxLoads  = 120
	// nodeFound is the time in which the process context is found on a quiet machine. Beside TestHostileLooks it took 2
	// to 3 s while both workers could be taken by programs that take long to read, and of the samples after the first
	// second 0.55 to 0.66 had their link. So the samples after the first link count, if that comes later; how late
	// labels are beside such programs TestHostileLooks tells, also of a receiver that has just started.
	nodeFound = time.Second
)

// TestRealWriterNode: HTTP servers on the Node.js of three releases, with contexts made
// by dd-trace and by @datadog/pprof alone. While code of a request burns, which the log
// tells to the microsecond and which nothing interrupts, each sample of the thread has the
// link of that request and no other: requests follow each other in milliseconds, and
// contexts of a worker thread in tenths of them. Between, where callbacks of several requests take
// turns that no log can tell, it has the link of a request that is active, or none.
func TestRealWriterNode(t *testing.T) {
	for _, writer := range []string{"dd-trace", "pprof"} {
		for _, release := range []string{"22", "24", "26"} {
			t.Run(writer+"/"+release, func(t *testing.T) {
				testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) { measureNode(t, bounds, writer, release) })
			})
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

func measureNode(t *testing.T, bounds *testutil.Bounds, writer, release string) {
	var hits []hit
	out := &sink{t: t, visit: func(b flatBatch) { hits = append(hits, b.hits...) }}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = nodeRate
		c.ReportInterval = 500 * time.Millisecond
		c.Symbolize = customlabelsreceiver.SymbolizeNone
	})
	server := startNode(t, writer, release)
	requests, waited := int64(0), 0
	for enough := false; !enough; waited++ {
		require.Less(bounds, waited, nodeMaxLoads, "%d requests, %d samples", requests, len(hits))
		requests += server.load(t, nodeLoad)
		out.mu.Lock()
		enough = server.sampled(hits, writer)
		out.mu.Unlock()
	}
	log := server.end(t)
	r.stop()

	var n nodeTally
	found := log.main["burn"][0].start + uint64(nodeFound)
	if first := firstLink(hits, int64(server.pid)); first > found {
		fmt.Printf("the first link came %v after the first request\n", time.Duration(first-found)+nodeFound)
		found = first
	}
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
	fmt.Printf("%-8s on Node.js %s: %d requests; %d samples while one burned: %d with its link, %d without (and %d before the first); %d linked samples between; worker threads: %d in a context of theirs, %d in none; %d mismatches\n",
		writer, release, requests, n.linked+n.missing+n.early, n.linked, n.missing, n.early, n.between, n.worker, n.plain, n.wrong)
	require.Zero(t, n.wrong)
	require.Greater(bounds, n.linked, nodeMinSamples)
	require.Greater(bounds, n.plain, nodeMinWorker)
	require.Equal(bounds, writer == "pprof", n.worker > nodeMinWorker, n.worker)
	require.Greater(bounds, float64(n.linked)/float64(n.linked+n.missing), nodeMinLinked)
	testutil.ReportLabelAssertions(t.Name(), n.linked+n.between+n.worker+n.plain)
}

// firstLink returns when a process had a link first, Unix ns; 0: never.
func firstLink(hits []hit, pid int64) (first uint64) {
	for i := range hits {
		if h := &hits[i]; h.pid == pid && h.link != (link{}) && (first == 0 || h.timeUnixNano < first) {
			first = h.timeUnixNano
		}
	}
	return first
}

// sampled reports whether there are samples enough of all kinds: twice as many, because
// not all of them are judged.
func (s *nodeServer) sampled(hits []hit, writer string) bool {
	var main, worker, others int
	for i := range hits {
		switch h := &hits[i]; {
		case h.pid != int64(s.pid):
		case h.link == (link{}):
			others++
		case h.attrs["thread.id"] == strconv.Itoa(s.pid):
			main++
		default:
			worker++
		}
	}
	return main > 2*nodeMinSamples && others > 2*nodeMinWorker && (writer == "dd-trace" || worker > 2*nodeMinWorker)
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
