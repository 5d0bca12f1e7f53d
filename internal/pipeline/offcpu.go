//go:build linux && (amd64 || arm64)

package pipeline

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/absence"
	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// awayShare of max_batch_bytes is what the records of threads that are away may take.
const awayShare = 2

// offCPUDrain reads switches until there are no more, joins the two ends of each
// absence, and aggregates those that were long enough. run belongs to its one
// goroutine.
type offCPUDrain struct {
	aggregator
	source  *bpf.OffCPU
	away    *absence.Table
	weight  float64 // of a nanosecond
	minimum uint64  // ns
	trim    *kernelTrim
	rec     bpf.Record
}

// offCPUCounts is what became of the switches that BPF has submitted.
type offCPUCounts struct {
	emitted      atomic.Int64
	belowMinimum atomic.Int64
	filtered     [NumFilterReasons]atomic.Int64     // target is counted in BPF too
	dropped      [NumOffCPUDropReasons]atomic.Int64 // the first four are counted in BPF
	userDrops    userDrops
	byUser       userCounts
	metered      atomic.Int64
	awayBytes    atomic.Int64

	mu    sync.Mutex
	final *bpf.SwitchCounters // once sampling has ended
	last  bpf.SwitchCounters  // for when reading fails
}

func newOffCPUDrain(o *Options, sampler *bpf.Sampler, to aggregator, fs procfs.FS) (*offCPUDrain, error) {
	source, err := sampler.OffCPU(bpf.OffCPUConfig{
		Threshold:       o.OffCPU.Threshold,
		RingBufferBytes: o.OffCPU.RingBytes,
		UserShare:       o.Ring.UserShare,
	})
	if err != nil {
		return nil, err
	}
	return &offCPUDrain{
		aggregator: to,
		source:     source,
		away:       absence.NewTable(o.Batches.MaxBytes / awayShare),
		weight:     1 / o.OffCPU.Threshold,
		minimum:    uint64(o.OffCPU.Minimum),
		trim:       &kernelTrim{fs: fs},
	}, nil
}

func (d *offCPUDrain) run() {
	d.batch = d.exporter.newBatch(d.lane)
	c := &d.counts.offCPU
	var sw bpf.Switch
	for {
		err := d.source.Read(&sw)
		var malformed *bpf.FormatError
		switch {
		case err == nil:
			now := d.take(&sw)
			d.settle(now)
			d.handOverAt(now)
		case errors.Is(err, bpf.ErrIdle):
			now := monotonicNow()
			d.settle(now)
			d.handOverAt(now)
		case errors.As(err, &malformed):
			c.dropped[OffCPUMalformed].Add(1)
		default: // drained, or closed without having been drained
			c.dropped[OffCPUUnfinished].Add(int64(d.away.Len()))
			d.release(len(d.awaiting.samples))
			d.handOver()
			return
		}
	}
}

// take follows one switch and returns when it was.
func (d *offCPUDrain) take(sw *bpf.Switch) uint64 {
	c := &d.counts.offCPU
	if !sw.Back {
		d.leave(sw)
		return sw.LeftNs
	}
	raw, ok := d.away.Return(sw.Thread, sw.LeftNs)
	if !ok {
		return sw.BackNs // it was given up, and counted as that
	}
	took := sw.BackNs - min(sw.LeftNs, sw.BackNs)
	if took < d.minimum {
		c.belowMinimum.Add(1)
		return sw.BackNs
	}
	if d.rec.Parse(raw) != nil {
		c.dropped[OffCPUMalformed].Add(1)
		return sw.BackNs
	}
	d.rec.KernelFrames = d.trim.trim(d.rec.KernelFrames)
	d.add(&d.rec, absenceEnd{sw.BackNs, weighted(took, d.weight)})
	return sw.BackNs
}

// weighted is what an absence counts: those that were not looked at are made up for
// by those that were. It is at most what can be summed up.
func weighted(ns uint64, weight float64) int64 {
	const most = 1 << 62
	return int64(math.Round(min(float64(ns)*weight, most)))
}

func (d *offCPUDrain) leave(sw *bpf.Switch) {
	c := &d.counts.offCPU
	if d.rec.Parse(sw.Raw) != nil {
		c.dropped[OffCPUMalformed].Add(1)
		return
	}
	// Now, and not only when it is back: what has to be found out about its process
	// is known by then.
	proc := d.table.Lookup(process.ID(d.rec.Process), int(d.rec.PID), d.rec.Comm)
	if d.filtered(proc) {
		return // what comes back is not known then
	}
	if d.memory.Pressure() == budget.Full {
		c.dropped[OffCPUNoMemory].Add(1)
		return
	}
	d.table.Sampled(proc, int64(d.rec.TimeNs))
	d.away.Leave(sw.Thread, sw.LeftNs, sw.Raw)
	lost := d.away.Counts()
	c.dropped[OffCPUEvicted].Store(int64(lost.Evicted))
	c.dropped[OffCPUReturnLost].Store(int64(lost.ReturnLost))
	d.awayBytes = d.away.Bytes()
	c.awayBytes.Store(int64(d.awayBytes))
}

// freeze keeps the last values of the BPF counters; the program may be released afterwards.
func (d *offCPUDrain) freeze() {
	final := d.bpfCounters()
	c := &d.counts.offCPU
	c.userDrops.update(&d.counts.users, final.DroppedUserShare, d.source.UserDrops)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.final = &final
}

// bpfCounters returns the BPF counters, or the last known ones when they can't be read.
func (d *offCPUDrain) bpfCounters() bpf.SwitchCounters {
	c := &d.counts.offCPU
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.final != nil {
		return *c.final
	}
	if counters, err := d.source.Counters(); err == nil {
		c.last = counters
	}
	return c.last
}

// snapshot reads the switches last: see the type snapshot.
func (d *offCPUDrain) snapshot(s *OffCPUSnapshot) {
	c := &d.counts.offCPU
	s.Enabled = true
	s.Emitted = c.emitted.Load()
	for r := range c.dropped {
		s.Dropped[r] = c.dropped[r].Load()
	}
	s.Filtered[OffCPUBelowMinimum] = c.belowMinimum.Load()
	s.Filtered[OffCPUTarget] = c.filtered[FilterTarget].Load()
	s.Filtered[OffCPUUnknownProcess] = c.filtered[FilterUnknownProcess].Load()
	s.AwayBytes = c.awayBytes.Load()
	s.RingBytes = int64(d.source.UnreadBytes())

	counters := d.bpfCounters()
	s.Dropped[OffCPURingFull] = int64(counters.DroppedRingFull)
	s.Dropped[OffCPUUserShare] = int64(counters.DroppedUserShare)
	s.UserDropped[UserDropPendingFull] = loaded(&c.byUser.dropped)
	s.UserDropped[UserDropShare] = c.userDrops.update(&d.counts.users, counters.DroppedUserShare, d.source.UserDrops)
	s.Dropped[OffCPUTableFull] = int64(counters.DroppedTableFull)
	s.Dropped[OffCPUInternal] = int64(counters.DroppedInternal)
	s.Filtered[OffCPUIdle] = int64(counters.FilteredIdle)
	s.Filtered[OffCPUKernel] = int64(counters.FilteredKernel)
	s.Filtered[OffCPUOwn] = int64(counters.FilteredOwn)
	s.Filtered[OffCPUTarget] += int64(counters.FilteredTarget)
	s.Filtered[OffCPUNotDrawn] = int64(counters.FilteredNotDrawn)
	s.Switches = int64(counters.Switches)
}

// fields for the log.
func (s *OffCPUSnapshot) fields() []zap.Field {
	fields := []zap.Field{zap.Int64("switches", s.Switches), zap.Int64("emitted", s.Emitted)}
	for reason, n := range s.Filtered {
		fields = append(fields, zap.Int64("filtered_"+OffCPUFilterReason(reason).String(), n))
	}
	for reason, n := range s.Dropped {
		fields = append(fields, zap.Int64("dropped_"+OffCPUDropReason(reason).String(), n))
	}
	return append(fields, zap.Int64("pending", s.Pending()))
}
