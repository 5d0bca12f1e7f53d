//go:build linux && (amd64 || arm64)

package pipeline

import (
	"sync"
	"sync/atomic"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/cputime"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// counts is what user space counts of samples; the rest is in BPF memory.
type counts struct {
	emitted    atomic.Int64
	filtered   [NumFilterReasons]atomic.Int64 // target also, and idle only, is counted in BPF
	dropped    [NumDropReasons]atomic.Int64   // ring_full, user_share and internal are counted in BPF
	labelReads [labels.NumABIs][labels.NumOutcomes]atomic.Int64
	userStacks [labels.NumOutcomes]atomic.Int64
	anomalies  [NumAnomalies]atomic.Int64
	offCPU     offCPUCounts
	users      userSeries
	userDrops  userDrops
	limits     [NumLimitActions]atomic.Int64 // those that the exporter and the aggregators count
	byUser     userCounts
	metered    atomic.Int64 // samples in the metrics
	meterLost  [NumSeriesLost][maxUserSeries + 1]atomic.Int64

	collections [NumCollectionResults]atomic.Int64

	mu    sync.Mutex
	final *bpf.Counters // once sampling has ended
	last  bpf.Counters  // for when reading fails
}

func (c *counts) countRecord(rec *bpf.Record, d *labels.Decoded) {
	for _, r := range d.Reads {
		if r.ABI < labels.NumABIs && r.Outcome < labels.NumOutcomes {
			c.labelReads[r.ABI][r.Outcome].Add(1)
		}
	}
	if !rec.KernelThread && int(rec.UserStack) < len(c.userStacks) {
		c.userStacks[rec.UserStack].Add(1)
	}
	if d.Counts == (labels.Counts{}) {
		return
	}
	c.anomalies[AnomalyCappedValue].Add(int64(d.Counts.CappedValues))
	c.anomalies[AnomalyConflict].Add(int64(d.Counts.Conflicts))
	c.anomalies[AnomalyDuplicateKey].Add(int64(d.Counts.DuplicateKeys))
	c.anomalies[AnomalyHalfID].Add(int64(d.Counts.HalfIDs))
	c.anomalies[AnomalyMalformedID].Add(int64(d.Counts.MalformedIDs))
	c.anomalies[AnomalyNullValue].Add(int64(d.Counts.NullValues))
	c.anomalies[AnomalyRenameConflict].Add(int64(d.Counts.RenameConflicts))
	c.anomalies[AnomalyTruncatedKey].Add(int64(d.Counts.TruncatedKeys))
	c.anomalies[AnomalyTruncatedSet].Add(int64(d.Counts.TruncatedSets))
	c.anomalies[AnomalyTruncatedValue].Add(int64(d.Counts.TruncatedValues))
	c.anomalies[AnomalyUnknownKey].Add(int64(d.Counts.UnknownKeys))
}

func (c *counts) countBuild(stats profile.BuildStats) {
	c.anomalies[AnomalyRenamedKey].Add(int64(stats.RenamedKeys + stats.EscapedKeys))
	c.anomalies[AnomalyConflict].Add(int64(stats.DroppedLabels))
}

// countOverflow counts samples of a part that lack something because of max_user_entries.
func (c *counts) countOverflow(l *lane, p *part) {
	sets, stacks := p.builder.Overflown()
	l.users.overflow(c.users.of(p.uid), sets, stacks)
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

// freeze keeps the last values of the BPF counters; the sampler may be closed afterwards.
func (c *counts) freeze(s *bpf.Sampler) {
	counters := c.bpfCounters(s)
	c.userDrops.update(&c.users, counters.DroppedUserShare, s.UserDrops)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.final = &counters
}

// bpfCounters returns the BPF counters, or the last known ones when they can't be read.
func (c *counts) bpfCounters(s *bpf.Sampler) bpf.Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.final != nil {
		return *c.final
	}
	if counters, err := s.Counters(); err == nil {
		c.last = counters
	}
	return c.last
}
