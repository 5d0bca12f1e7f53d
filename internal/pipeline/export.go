//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// exporter takes batches and has them handed to the next consumer, on a goroutine of its own.
// Each batch is added to the metrics once, too: there, or where it is dropped.
type exporter struct {
	deliverer *deliverer  // nil: no profiles
	metering  *metering   // nil: no metrics
	symbols   *symbolizer // nil: no names of functions
	counts    *counts
	table     *process.Table
	omission  omission
	memory    *budget.Memory

	ctx      context.Context
	cancel   context.CancelFunc
	cpu      *lane
	offCPU   *lane // nil: none
	done     sync.WaitGroup
	interval time.Duration
	endedAt  time.Time // the last interval, for the process table
}

func newExporter(o *Options, c *counts, table *process.Table, fs procfs.FS, limits budgets) *exporter {
	ctx, cancel := context.WithCancel(context.Background())
	e := &exporter{
		counts:   c,
		table:    table,
		omission: newOmission(&o.Targets),
		memory:   limits.memory,
		ctx:      ctx,
		cancel:   cancel,
		cpu:      newCPULane(o, c, limits.memory),
		interval: o.ReportInterval,
	}
	if !o.Symbols.Skip {
		e.symbols = newSymbolizer(o, fs, table, &limits)
	}
	if o.Next.Profiles != nil {
		e.deliverer = newDeliverer(o, c, newResolver(e.symbols, e.omission), limits.memory)
	}
	if o.Next.Metrics != nil {
		e.metering = newMetering(o, c, table, limits.memory)
	}
	if o.OffCPU.Threshold > 0 {
		e.offCPU = newOffCPULane(o, c, limits.memory)
	}
	return e
}

// newBatch returns an empty batch that begins now.
func (e *exporter) newBatch(l *lane) *batch {
	b := &batch{lane: l, parts: map[uint32]*part{}}
	b.clockOffset, b.startMono = clockOffset()
	return b
}

// recycle empties a batch, whose parts are used again.
func (e *exporter) recycle(b *batch) {
	for _, p := range b.parts {
		b.lane.parts.give(p)
	}
	e.memory.Add(budget.OfLabels, -b.labels)
	b.parts, b.last, b.labels = nil, nil, 0
}

// earlyShare of max_pending_batches is what batches of one user that come before their
// time may take: so they cost this user samples, and not the others.
const earlyShare = 2

// enqueue passes a batch on or drops it; it never waits. Only one goroutine does this for a lane.
func (e *exporter) enqueue(b *batch) {
	b.endMono = monotonicNow()
	n := b.samples()
	if n == 0 {
		e.recycle(b)
		return
	}
	if !b.early || len(b.lane.pending) < max(1, cap(b.lane.pending)/earlyShare) {
		select {
		case b.lane.pending <- b:
			return
		default:
		}
	}
	e.drop(b, n)
	e.recycle(b)
}

// drop gives up a batch of n samples for which there is no room. Metrics have room for it.
func (e *exporter) drop(b *batch, n int) {
	if e.deliverer == nil {
		e.meter(b)
		return
	}
	if e.metering != nil {
		e.metering.add(b)
	}
	b.lane.pendingFull.Add(int64(n))
	if b.early {
		for uid := range b.parts {
			b.lane.users.pendingFull(e.counts.users.of(uid), n)
		}
	}
}

// meter does with a batch all there is to do where there are no profiles.
func (e *exporter) meter(b *batch) {
	counted, processes := e.metering.add(b)
	for _, p := range b.parts {
		e.counts.countOverflow(b.lane, p)
	}
	for reason, n := range processes.leftOut {
		b.lane.filtered[reason].Add(n)
	}
	b.lane.emitted.Add(counted)
}

func (e *exporter) start() {
	cpu, offCPU := e.cpu.pending, chan *batch(nil)
	if e.offCPU != nil {
		offCPU = e.offCPU.pending
	}
	if e.metering != nil {
		e.metering.start()
	}
	e.done.Go(func() {
		e.symbols.readKernel()
		for cpu != nil || offCPU != nil {
			var b *batch
			var ok bool
			select {
			case b, ok = <-cpu:
				if !ok {
					cpu = nil
				}
			case b, ok = <-offCPU:
				if !ok {
					offCPU = nil
				}
			}
			if ok {
				e.export(b)
				e.endInterval()
				e.recycle(b)
				e.counts.limits[LimitSymbolsDropped].Add(e.symbols.weigh(e.memory))
			}
		}
	})
}

// endInterval tells the process table that time has passed: batches of both lanes
// are those of one interval, and full ones come before it has passed.
func (e *exporter) endInterval() {
	if now := time.Now(); now.Sub(e.endedAt) > e.interval/2 {
		e.endedAt = now
		e.table.EndInterval()
	}
}

// finish waits until everything that is pending has been handed over. When ctx
// ends first, the consumer's context does too.
func (e *exporter) finish(ctx context.Context) {
	stop := context.AfterFunc(ctx, e.cancel)
	defer stop()
	close(e.cpu.pending)
	if e.offCPU != nil {
		close(e.offCPU.pending)
	}
	e.done.Wait()
	e.cancel()
	e.symbols.close()
	if e.metering != nil {
		e.metering.finish(ctx)
	}
}

func (e *exporter) export(b *batch) {
	e.await(b)
	if e.deliverer == nil {
		e.meter(b)
		return
	}
	var infos map[uint64]*process.Info
	if e.metering != nil {
		_, processes := e.metering.add(b)
		infos = processes.infos
	}
	e.deliverer.deliverAll(e.ctx, b, infos)
}
