//go:build amd64 || arm64

package customlabelsreceiver

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
	filtered   [numFilterReasons]atomic.Int64 // target also, and idle only, is counted in BPF
	dropped    [numDropReasons]atomic.Int64   // ring_full, user_share and internal are counted in BPF
	labelReads [labels.NumABIs][labels.NumOutcomes]atomic.Int64
	userStacks [labels.NumOutcomes]atomic.Int64
	anomalies  [numAnomalies]atomic.Int64
	offCPU     offCPUCounts
	users      userSeries
	userDrops  userDrops
	limits     [numLimitActions]atomic.Int64 // those that the exporter and the aggregators count
	byUser     userCounts
	metered    atomic.Int64 // samples in the metrics
	meterLost  [numSeriesLost][maxUserSeries + 1]atomic.Int64

	collections [numCollectionResults]atomic.Int64

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
	c.anomalies[anomalyCappedValue].Add(int64(d.Counts.CappedValues))
	c.anomalies[anomalyConflict].Add(int64(d.Counts.Conflicts))
	c.anomalies[anomalyDuplicateKey].Add(int64(d.Counts.DuplicateKeys))
	c.anomalies[anomalyHalfID].Add(int64(d.Counts.HalfIDs))
	c.anomalies[anomalyMalformedID].Add(int64(d.Counts.MalformedIDs))
	c.anomalies[anomalyNullValue].Add(int64(d.Counts.NullValues))
	c.anomalies[anomalyRenameConflict].Add(int64(d.Counts.RenameConflicts))
	c.anomalies[anomalyTruncatedKey].Add(int64(d.Counts.TruncatedKeys))
	c.anomalies[anomalyTruncatedSet].Add(int64(d.Counts.TruncatedSets))
	c.anomalies[anomalyTruncatedValue].Add(int64(d.Counts.TruncatedValues))
	c.anomalies[anomalyUnknownKey].Add(int64(d.Counts.UnknownKeys))
}

func (c *counts) countBuild(stats profile.BuildStats) {
	c.anomalies[anomalyRenamedKey].Add(int64(stats.RenamedKeys + stats.EscapedKeys))
	c.anomalies[anomalyConflict].Add(int64(stats.DroppedLabels))
}

// meteredOverflow counts samples of a user that are in overflow series of the metrics.
func (c *counts) meteredOverflow(uid uint32, r *cputime.Result) {
	if r.LostLabels+r.LostOwner == 0 {
		return
	}
	series := c.users.of(uid)
	c.meterLost[seriesLostLabels][series].Add(int64(r.LostLabels))
	c.meterLost[seriesLostProcess][series].Add(int64(r.LostOwner))
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

func (p *samplingPipeline) snapshotMetering(s *meteringSnapshot) {
	m, c := p.exporter.metering, p.counts
	if m == nil {
		return
	}
	s.enabled, s.series = true, int64(m.sums.Stats().Series)
	s.samples, s.switches = c.metered.Load(), c.offCPU.metered.Load()
	for l := range s.lost {
		s.lost[l] = loaded(&c.meterLost[l])
	}
	for r := range s.collections {
		s.collections[r] = c.collections[r].Load()
	}
}

// snapshot fills s with the state of the pipeline; see there for the order.
func (p *samplingPipeline) snapshot(s *snapshot) {
	c := p.counts
	p.snapshotMetering(&s.metering)
	s.emitted = c.emitted.Load()
	for r := range c.filtered {
		s.filtered[r] = c.filtered[r].Load()
	}
	for r := range c.dropped {
		s.dropped[r] = c.dropped[r].Load()
	}
	for abi := range c.labelReads {
		for o := range c.labelReads[abi] {
			s.labelReads[abi][o] = c.labelReads[abi][o].Load()
		}
	}
	for o := range c.userStacks {
		s.userStacks[o] = c.userStacks[o].Load()
	}
	for a := range c.anomalies {
		s.anomalies[a] = c.anomalies[a].Load()
	}
	s.labels.readRegistry(p.registry, &c.users, len(p.cfg.Labels.Rules))
	table := p.table.Stats()
	s.trackedProcesses = int64(table.Processes)
	s.anomalies[anomalyChangedKey] = int64(table.KeyConflicts)
	s.contextReads, s.contextErrors, s.contextProcesses = int64(table.ContextReads), int64(table.ContextErrors), int64(table.Contexts)
	s.labelSourceProcesses = int64(p.publisher.labelled())
	s.processLoadErrors = int64(table.LoadErrors + table.FileErrors + table.Refused + table.MappingsCut + table.PublishErrors)
	s.unwindBytes, s.unwindTables = int64(table.RowBytes), int64(table.RowFiles)
	s.unwindFiles = [numUnwindResults]int64{
		unwindLoaded: int64(table.RowsBuilt), unwindFailed: int64(table.RowsFailed), unwindNoRoom: int64(table.RowsRefused),
	}
	symbols := p.exporter.resolver.symbolizer.stats()
	s.hanging = [numHangKinds]int64{hangProcess: int64(table.Hanging), hangFile: int64(symbols.Hanging)}
	s.symbolBytes = int64(symbols.Bytes)
	s.symbolProblems = [numSymbolProblems]int64{
		symbolFailed: int64(symbols.Failures), symbolTruncated: int64(symbols.Truncated),
		symbolTimedOut: int64(symbols.TimedOut), symbolRefused: int64(symbols.Refused),
	}
	s.ringBufferUsedBytes = int64(p.sampler.UnreadBytes())
	p.snapshotLimits(s, &table)

	counters := c.bpfCounters(p.sampler)
	s.droppedProcessEvents = int64(counters.EventsDropped)
	s.filtered[filterIdle] = int64(counters.FilteredIdle)
	s.filtered[filterTarget] += int64(counters.FilteredTarget)
	s.dropped[dropRingFull] = int64(counters.DroppedRingFull)
	s.dropped[dropUserShare] = int64(counters.DroppedUserShare)
	s.users = &c.users
	s.userDropped[userDropPendingFull] = loaded(&c.byUser.dropped)
	s.lostLabels = sum(loaded(&c.byUser.lostLabels), loaded(&c.offCPU.byUser.lostLabels))
	s.lostStacks = sum(loaded(&c.byUser.lostStacks), loaded(&c.offCPU.byUser.lostStacks))
	s.userDropped[userDropShare] = c.userDrops.update(&c.users, counters.DroppedUserShare, p.sampler.UserDrops)
	s.dropped[dropInternal] = int64(counters.DroppedInternal)
	s.hits = int64(counters.Hits)
	if p.offCPU != nil {
		p.offCPU.snapshot(&s.offCPU)
	}
}
