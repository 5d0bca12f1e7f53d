//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// noticeSamples is how many samples a judge has to notice a defect.
var noticeSamples = size(10_000, 4000, 1000)

// truthNoticed is the share of the samples with other labels than they should have that a
// judge must notice: all but those within the error of the clocks.
const truthNoticed = 0.95

// TestTruthNotices: what the judge of TestFidelity says of the samples of real writers
// when each has the set before, or another thread's, and so on; and of the same samples as
// they are.
func TestTruthNotices(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	testutil.Measure(t, measureTruthNotices)
}

func measureTruthNotices(t *testing.T, bounds *testutil.Bounds) {
	writers := map[int64]*truthWriter{}
	for _, kind := range []string{"v0-exe", "v1-lib", "v1-dlopengd", "ctx-exe", "ctx-dlopen --in-place"} {
		pid, w := startFidelity(t, kind)
		writers[pid] = w
	}
	type trial struct {
		truthMutant
		judge   *truthJudge
		changed int
	}
	var trials []*trial
	for _, m := range truthMutants() {
		trials = append(trials, &trial{truthMutant: m})
	}
	honest := newTruthJudge(t, writers)
	begun := false
	out := &truthSink{t: t, visit: func(p pprofile.Profiles) {
		if begun && honest.total().judged >= noticeSamples {
			return
		}
		// Defects begin when no sample is without labels because its thread is not known yet.
		if !begun && allPublish(writers) {
			begun = true
			for _, w := range writers {
				w.tally = truthTally{}
			}
			for _, trial := range trials {
				trial.judge = newTruthJudge(t, afresh(writers))
			}
		}
		honest.judgeBatch(p)
		if !begun {
			return
		}
		for _, trial := range trials {
			mutated, changed := trial.apply(p, writers)
			trial.changed += changed
			trial.judge.judgeBatch(mutated)
		}
	}}
	plain := startPlain(t)
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) { fidelityConfig(c, plain, writers) })
	out.await("samples judged", noticeSamples, func() int {
		if !begun {
			return 0
		}
		return honest.total().judged
	})
	anomalies := r.metric("label_anomalies", "kind")
	r.stop()

	n := honest.total()
	fmt.Printf("as it is: %v\n", honest)
	require.Empty(t, honest.mistakes)
	require.Zero(t, n.wrong+n.stale)
	var by []string
	for _, w := range writers {
		by = append(by, fmt.Sprintf("%s %d of %d", w.name, w.tally.unlabelled, w.tally.judged))
	}
	require.LessOrEqual(bounds, float64(n.unlabelled), fidelityMaxUnlabelled(t)*float64(n.judged)+2, "without labels: %s; %v", strings.Join(by, ", "), anomalies)
	for _, trial := range trials {
		found := trial.judge.total()
		noticed := found.wrong + found.stale + found.unlabelled - n.unlabelled
		fmt.Printf("%-42s %6d of %6d samples changed, %6d noticed (%d wrong, %d stale, %d without labels)\n",
			trial.name+":", trial.changed, found.judged+found.unlabelled, noticed, found.wrong, found.stale, found.unlabelled)
		assert.GreaterOrEqual(bounds, trial.changed, noticeSamples/250, trial.name)
		assert.GreaterOrEqual(bounds, float64(noticed), truthNoticed*float64(trial.changed)-1, trial.name)
	}
}

// allPublish reports whether a sample with labels was seen of each thread.
func allPublish(writers map[int64]*truthWriter) bool {
	for _, w := range writers {
		if len(w.owners) < fidelityThreads {
			return false
		}
	}
	return true
}

// afresh returns writers of which no sample was judged, but their threads are known.
func afresh(writers map[int64]*truthWriter) map[int64]*truthWriter {
	all := map[int64]*truthWriter{}
	for pid, w := range writers {
		copied := &truthWriter{name: w.name, verify: w.verify, publishes: w.publishes, log: w.log, owners: map[uint64]*truthOwner{}}
		for id, o := range w.owners {
			copied.owners[id] = &truthOwner{id: id, log: o.log, latest: o.latest}
		}
		all[pid] = copied
	}
	return all
}
