//go:build linux && (amd64 || arm64)

package pipeline

import (
	"sync/atomic"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/cputime"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// counts is what user space counts that is not of one stream.
type counts struct {
	labelReads [record.NumABIs][record.NumOutcomes]atomic.Int64
	userStacks [record.NumOutcomes]atomic.Int64
	anomalies  [labels.NumAnomalies]atomic.Int64
	users      userSeries
	limits     [NumLimitActions]atomic.Int64 // those that the output and the aggregators count
	meterLost  [NumSeriesLost][maxUserSeries + 1]atomic.Int64

	collections [NumCollectionResults]atomic.Int64
}

func (c *counts) countRecord(rec *bpf.Record, d *labels.Decoded) {
	for _, r := range d.Reads {
		if r.ABI < record.NumABIs && r.Outcome < record.NumOutcomes {
			c.labelReads[r.ABI][r.Outcome].Add(1)
		}
	}
	if !rec.KernelThread && int(rec.UserStack) < len(c.userStacks) {
		c.userStacks[rec.UserStack].Add(1)
	}
	if d.Counts == (labels.Counts{}) {
		return
	}
	for a, n := range d.Counts {
		if n > 0 {
			c.anomalies[a].Add(int64(n))
		}
	}
}

func (c *counts) countBuild(stats profile.BuildStats) {
	c.anomalies[labels.AnomalyRenamedKey].Add(int64(stats.RenamedKeys + stats.EscapedKeys))
	c.anomalies[labels.AnomalyConflict].Add(int64(stats.DroppedLabels))
}

// meteredOverflow counts samples of a user that are in overflow series of the metrics.
func (c *counts) meteredOverflow(uid uint32, r *cputime.Result) {
	if r.LostLabels+r.LostOwner == 0 {
		return
	}
	series := c.users.of(uid)
	c.meterLost[SeriesLostLabels][series].Add(int64(r.LostLabels))
	c.meterLost[SeriesLostProcess][series].Add(int64(r.LostOwner))
}
