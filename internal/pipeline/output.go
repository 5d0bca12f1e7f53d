//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// output takes batches and has them handed to the next consumer, on a goroutine of its own.
// Each batch is added to the metrics once, too: there, or where it is dropped.
type output struct {
	deliverer    *deliverer  // nil: no profiles
	metering     *metering   // nil: no metrics
	symbols      *symbolizer // nil: no names of functions
	counts       *counts
	table        *process.Table
	targetFilter targetFilter
	memory       *budget.Memory

	ctx      context.Context
	cancel   context.CancelFunc
	pending  [profile.NumKinds]chan *batch // of the streams; nil: not wanted
	done     sync.WaitGroup
	interval time.Duration
	patience time.Duration  // in which the next consumer takes what there is in the end
	read     chan struct{}  // has one when a batch has been read since endIntervals looked
	ending   sync.WaitGroup // endIntervals
}

func newOutput(o *Options, c *counts, table *process.Table, fs procfs.FS, limits budgets) *output {
	ctx, cancel := context.WithCancel(context.Background())
	e := &output{
		counts:       c,
		table:        table,
		targetFilter: newTargetFilter(&o.Targets),
		memory:       limits.memory,
		ctx:          ctx,
		cancel:       cancel,
		interval:     o.ReportInterval,
		patience:     o.ShutdownPatience,
		read:         make(chan struct{}, 1),
	}
	if !o.Symbols.Skip {
		e.symbols = newSymbolizer(o, fs, table, &limits)
	}
	if o.Next.Profiles != nil {
		e.deliverer = newDeliverer(o, c, newResolver(e.symbols), limits.memory)
	}
	if o.Next.Metrics != nil {
		e.metering = newMetering(o, c, table, limits.memory)
	}
	return e
}

// newBatch returns an empty batch that begins now.
func (e *output) newBatch(s *stream) *batch {
	b := &batch{stream: s, users: map[uint32]*userBatch{}}
	b.clockOffset, b.startMono = clockOffset()
	b.began = time.Now()
	return b
}

// recycle empties a batch; what it has of its users is used again.
func (e *output) recycle(b *batch) {
	b.weight.forget(e.memory, budget.OfBatches) // the pool counts what it keeps
	for _, p := range b.users {
		e.table.Release(p.processes)
		b.stream.pool.give(p)
	}
	e.memory.Add(budget.OfLabels, -b.labels)
	b.users, b.last, b.labels = nil, nil, 0
}

// earlyShare of BatchOptions.MaxPending is what batches of one user that come before their
// time may take: so they cost this user samples, and not the others.
const earlyShare = 2

// enqueue passes a batch on or drops it; it never waits. Only one goroutine does this for a stream.
func (e *output) enqueue(b *batch) {
	b.endMono = monotonicNow()
	if !b.early {
		select {
		case e.read <- struct{}{}:
		default: // it has one
		}
	}
	n := b.samples()
	if n == 0 {
		e.recycle(b)
		return
	}
	if !b.early || len(b.stream.pending) < max(1, cap(b.stream.pending)/earlyShare) {
		select {
		case b.stream.pending <- b:
			return
		default:
		}
	}
	e.drop(b, n)
	e.recycle(b)
}

// drop gives up a batch of n samples for which there is no room. Metrics have room for it.
func (e *output) drop(b *batch, n int) {
	if e.deliverer == nil {
		e.meter(b)
		return
	}
	if e.metering != nil {
		k := newKnown(b, e.targetFilter)
		e.metering.add(b, &k)
	}
	b.stream.drop(DropPendingFull, int64(n))
	if b.early {
		for uid := range b.users {
			b.stream.dropEarly(uid, n)
		}
	}
}

// meter does with a batch all there is to do where there are no profiles.
func (e *output) meter(b *batch) {
	k := newKnown(b, e.targetFilter)
	counted := e.metering.add(b, &k)
	for _, p := range b.users {
		b.stream.countOverflow(p)
	}
	for reason, n := range k.leftOut {
		b.stream.filter(FilterReason(reason), n)
	}
	b.stream.emitted.Add(counted)
}

func (e *output) start() {
	if e.metering != nil {
		e.metering.start()
	}
	e.ending.Go(e.endIntervals)
	e.done.Go(func() {
		e.symbols.readKernel()
		pending := e.pending
		var handedOver time.Time
		for pending != [profile.NumKinds]chan *batch{} {
			kind := profile.KindCPU
			var b *batch
			select {
			case b = <-pending[profile.KindCPU]:
			case b = <-pending[profile.KindOffCPU]:
				kind = profile.KindOffCPU
			}
			if b == nil { // the stream has ended
				pending[kind] = nil
				continue
			}
			e.export(b)
			e.recycle(b)
			if now := time.Now(); now.Sub(handedOver) > e.interval/2 { // as in endIntervals
				handedOver = now
				e.table.HandedOver()
			}
			e.counts.limits[LimitSymbolsDropped].Add(e.symbols.weigh(e.memory))
		}
	})
}

// endIntervals tells the process table when the samples of an interval have been read, however long the
// next consumer takes. Batches of both streams are those of one interval, and full ones come before it
// has passed.
func (e *output) endIntervals() {
	var ended time.Time
	for range e.read {
		if now := time.Now(); now.Sub(ended) > e.interval/2 {
			ended = now
			e.table.EndInterval()
		}
	}
}

// finish waits until everything that is pending has been handed over. When ctx ends first, or
// after its patience, the consumer's context does too.
func (e *output) finish(ctx context.Context) {
	patient, lost := context.WithTimeout(ctx, e.patience)
	defer lost()
	stop := context.AfterFunc(patient, e.cancel)
	defer stop()
	for _, pending := range e.pending {
		if pending != nil {
			close(pending)
		}
	}
	close(e.read)
	e.ending.Wait()
	e.done.Wait()
	e.cancel()
	e.symbols.close()
	if e.metering != nil {
		e.metering.finish(ctx)
	}
}

func (e *output) export(b *batch) {
	e.await(b)
	if e.deliverer == nil {
		e.meter(b)
		return
	}
	k := newKnown(b, e.targetFilter)
	if e.metering != nil {
		ofMetrics := k
		e.metering.add(b, &ofMetrics)
	}
	e.deliverer.deliverAll(e.ctx, b, k)
}
