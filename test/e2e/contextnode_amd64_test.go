//go:build linux

package e2e

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// nodeContextRows runs the servers of TestRealWriterNode, again and again.
func nodeContextRows(t *testing.T, bounds *testutil.Bounds) (rows []*contextRow) {
	for _, writer := range []string{"dd-trace", "pprof"} {
		row := &contextRow{writer: "Node.js, " + writer, lacks: []property{ofFork}}
		if writer == "dd-trace" {
			row.lacks = append(row.lacks, ofFlags) // it leaves them 0, as in the schema's first version
		}
		rows = append(rows, row)
		linked, missing := 0, 0
		for range realStarts {
			var server *nodeServer
			var log *nodeLog
			hits := gather(t, func(c *customlabelsreceiver.Config) { c.Symbolize = customlabelsreceiver.SymbolizeNone }, func() {
				server = startNode(t, writer, "24")
				server.load(t, realTime)
				log = server.end(t)
			})
			l, m := row.checkRequests(t, bounds, of(hits, int64(server.pid)), server.pid, log, writer)
			linked, missing = linked+l, missing+m
			for _, h := range of(hits, log.child) {
				if h.executable == "spin-plain" { // and not yet Node.js
					row.checkOther(t, &h)
				}
			}
		}
		require.Greater(bounds, float64(linked), nodeMinLinked*float64(linked+missing), "linked %d, missing %d", linked, missing)
	}
	return rows
}

// checkRequests checks the samples of the serving thread, while a request burned. The
// garbage collector makes for some without labels: missing.
func (row *contextRow) checkRequests(t *testing.T, bounds *testutil.Bounds, hits []contextHit, pid int, log *nodeLog, writer string) (linked, missing int) {
	var first, labelled time.Duration
	burns := map[uint64]bool{} // by when they began: whether all of the linked samples were right
	began := log.main["burn"][0].start
	for i := range hits {
		h := &hits[i]
		burn := spanAt(log.main["burn"], h.timeUnixNano, clockSlack)
		if burn == nil || h.attrs["thread.id"] != strconv.Itoa(pid) {
			continue
		}
		since := max(1, time.Duration(h.timeUnixNano-began))
		if first == 0 {
			first = since
		}
		if h.link == (link{}) {
			if labelled == 0 {
				row.late += count(since >= contextGoal)
			} else {
				missing++
			}
			continue
		}
		if labelled == 0 {
			labelled = since
		}
		linked++
		good := burn.linked(&h.hit)
		row.check(t, ofLink, good, "%v instead of %+v", h.link, *burn)
		row.check(t, ofAttributes, burn.attributed(&h.hit), "%v instead of %+v", h.attrs, *burn)
		if !slices.Contains(row.lacks, ofFlags) {
			row.check(t, ofFlags, h.attrs["trace_sampled"] == "true", "%q", h.attrs["trace_sampled"])
		} else {
			require.NotContains(t, h.attrs, "trace_sampled")
		}
		row.check(t, ofResource, h.resource["service.name"] == "shop-"+writer, "%v", h.resource)
		before, seen := burns[burn.start]
		burns[burn.start] = good && (before || !seen)
	}
	require.NotZero(bounds, labelled, "found")
	for _, good := range burns {
		row.check(t, ofUpdate, good, "a request")
	}
	row.delays, row.waits = append(row.delays, labelled), append(row.waits, first)
	return linked, missing
}
