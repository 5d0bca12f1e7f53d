//go:build linux && (amd64 || arm64)

package e2e

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

var (
	realStarts = size(3, 1, 1) // of each of the registries' writers
	realTime   = size(3*time.Second, 2*time.Second, 3*time.Second)
)

// goContextRow runs a service that is traced by dd-trace-go, again and again. Its labels
// have the id of the span, and none of the trace: no link, but an attribute.
func goContextRow(t *testing.T, bounds *testutil.Bounds) *contextRow {
	row := &contextRow{writer: "dd-trace-go", lacks: []property{ofFlags, ofFork}}
	program := buildDDWriter(t)
	for range realStarts {
		var w *ddWriter
		hits := gather(t, func(*customlabelsreceiver.Config) {}, func() {
			w = startDDWriter(t, program)
			time.Sleep(realTime)
			require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
			require.NoError(t, w.cmd.Wait())
		})
		log := w.read(t)
		row.checkSpans(t, bounds, of(hits, int64(w.cmd.Process.Pid)), log)
		for _, h := range of(hits, log.child) {
			if h.executable == "spin-plain" { // and not yet the service
				row.checkOther(t, &h)
			}
		}
	}
	return row
}

func (row *contextRow) checkSpans(t *testing.T, bounds *testutil.Bounds, hits []contextHit, log *ddLog) {
	var first, labelled time.Duration
	named := false
	seen := map[string]bool{} // spans: whether all of their samples were right
	for i := range hits {
		h := &hits[i]
		spans := log.at(&h.hit)
		if len(spans) == 0 {
			continue // between two
		}
		since := max(1, time.Duration(h.timeUnixNano-log.began))
		if first == 0 {
			first = since
		}
		id := h.attrs[prefix+"span id"]
		if id == "" && labelled == 0 {
			row.late += count(since >= contextGoal)
			continue
		}
		if labelled == 0 {
			labelled = since
		}
		if name := h.resource["service.name"]; !namesService(h.resource) && !named {
			row.late += count(since >= contextGoal)
		} else {
			named = true
			row.check(t, ofResource, name == "dd-shop", "%v after the start: %v", since, h.resource)
		}
		n := slices.IndexFunc(spans, func(s ddSpan) bool { return s.id == id })
		row.check(t, ofLink, n >= 0, "%q, %v after the start, of none of %v", id, since, spans)
		row.check(t, ofAttributes, h.attrs[prefix+"trace endpoint"] == "GET /", "%v", h.attrs)
		if n < 0 {
			seen[spans[0].id] = false
		} else if _, ok := seen[spans[n].id]; !ok {
			seen[spans[n].id] = true
		}
	}
	require.NotZero(bounds, labelled, "found")
	for id, good := range seen {
		row.check(t, ofUpdate, good, "span %s", id)
	}
	row.delays, row.waits = append(row.delays, labelled), append(row.waits, first)
}
