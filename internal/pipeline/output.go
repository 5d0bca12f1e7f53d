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
	namedOnly    bool // AttributeOptions.NamedServiceOnly
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
	out := &output{
		counts:       c,
		table:        table,
		targetFilter: newTargetFilter(&o.Targets),
		namedOnly:    o.Attributes.NamedServiceOnly,
		memory:       limits.memory,
		ctx:          ctx,
		cancel:       cancel,
		interval:     o.ReportInterval,
		patience:     o.ShutdownPatience,
		read:         make(chan struct{}, 1),
	}
	if !o.Symbols.Skip {
		out.symbols = newSymbolizer(o, fs, table, &limits)
	}
	if o.Next.Profiles != nil {
		out.deliverer = newDeliverer(o, c, newResolver(out.symbols), limits.memory)
	}
	if o.Next.Metrics != nil {
		out.metering = newMetering(o, c, table, limits.memory)
	}
	return out
}

// newBatch returns an empty batch that begins now.
func (o *output) newBatch(s *stream) *batch {
	b := &batch{stream: s, users: map[uint32]*userBatch{}}
	b.clockOffset, b.clockMono = clockOffset()
	b.began, b.startMono = time.Now(), b.clockMono
	return b
}

// recycle empties a batch; what it has of its users is used again.
func (o *output) recycle(b *batch) {
	b.weight.forget(o.memory, budget.OfBatches) // the pool counts what it keeps
	for _, p := range b.users {
		o.table.Release(p.processes)
		b.stream.pool.give(p)
	}
	o.memory.Add(budget.OfLabels, -b.labels)
	b.users, b.last, b.labels = nil, nil, 0
}

// earlyShare of BatchOptions.MaxPending is what batches of one user that come before their
// time may take: so they cost this user samples, and not the others.
const earlyShare = 2

// enqueue passes a batch on or drops it; it never waits. Only one goroutine does this for a stream.
func (o *output) enqueue(b *batch) {
	if b.endMono == 0 {
		b.endMono = monotonicNow()
	}
	if !b.early {
		select {
		case o.read <- struct{}{}:
		default: // it has one
		}
	}
	n := b.samples()
	if n == 0 {
		o.recycle(b)
		return
	}
	if early := b.early; !b.early || len(b.stream.pending) < max(1, cap(b.stream.pending)/earlyShare) {
		select {
		case b.stream.pending <- b: // it is the output's goroutine's now
			if !early {
				o.hurry()
			}
			return
		default:
		}
	}
	o.drop(b, n)
	o.recycle(b)
}

// drop gives up a batch of n samples for which there is no room. Metrics have room for it.
func (o *output) drop(b *batch, n int) {
	if o.deliverer == nil {
		o.meter(b)
		return
	}
	if o.metering != nil {
		k := newKnown(b, o.targetFilter, o.namedOnly)
		o.metering.add(b, &k)
	}
	b.stream.drop(DropPendingFull, int64(n))
	if b.early {
		for uid := range b.users {
			b.stream.dropEarly(uid, n)
		}
	}
}

// meter does with a batch all there is to do where there are no profiles.
func (o *output) meter(b *batch) {
	k := newKnown(b, o.targetFilter, o.namedOnly)
	counted := o.metering.add(b, &k)
	for _, p := range b.users {
		b.stream.countOverflow(p)
	}
	for reason, n := range k.leftOut {
		b.stream.filter(FilterReason(reason), n)
	}
	b.stream.emitted.Add(counted)
}

func (o *output) start() {
	if o.metering != nil {
		o.metering.start()
	}
	o.ending.Go(o.endIntervals)
	o.done.Go(func() {
		o.symbols.readKernel()
		pending := o.pending
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
			o.export(b)
			o.recycle(b)
			if now := time.Now(); now.Sub(handedOver) > o.interval/2 { // as in endIntervals
				handedOver = now
				o.table.HandedOver()
			}
			o.counts.limits[LimitSymbolsDropped].Add(o.symbols.weigh(o.memory))
		}
	})
}

// endIntervals tells the process table when the samples of an interval have been read, however long the
// next consumer takes. Batches of both streams are those of one interval, and full ones come before it
// has passed.
func (o *output) endIntervals() {
	var ended time.Time
	for range o.read {
		if now := time.Now(); now.Sub(ended) > o.interval/2 {
			ended = now
			o.table.EndInterval()
		}
	}
}

// finish waits until everything that is pending has been handed over. When ctx ends first, or
// after its patience, the consumer's context does too, and nothing is read any more for what is only going to be
// refused. What is still being read then is for symbolizer.close to wait for. A consumer that goes on nevertheless is
// left behind.
func (o *output) finish(ctx context.Context) {
	patient, lost := context.WithTimeout(ctx, o.patience)
	defer lost()
	stop := context.AfterFunc(patient, func() {
		o.cancel()
		o.symbols.stop()
	})
	defer stop()
	for _, pending := range o.pending {
		if pending != nil {
			close(pending)
		}
	}
	close(o.read)
	o.ending.Wait()
	o.done.Wait()
	o.cancel()
	if o.metering != nil {
		o.metering.finish(ctx)
	}
}

// hurryShare of BatchOptions.MaxPending may wait behind a batch that waits for names. Where more do, a batch takes
// the names that are known: files that take long to read, which anybody may have, would have samples of all dropped.
const hurryShare = 4

// hurry has names wait for nothing where too many batches wait, of whichever stream: one goroutine hands over all. It is
// called for each batch before its names are looked up, and for each that comes behind it, but for early ones, which one
// user may have many of.
func (o *output) hurry() {
	for _, pending := range o.pending {
		if len(pending) > cap(pending)/hurryShare {
			o.symbols.hurry(true)
		}
	}
}

func (o *output) export(b *batch) {
	o.symbols.hurry(false) // before it is looked how many wait: more may come meanwhile
	o.hurry()
	o.await(b)
	if o.deliverer == nil {
		o.meter(b)
		return
	}
	k := newKnown(b, o.targetFilter, o.namedOnly)
	if o.metering != nil {
		ofMetrics := k
		o.metering.add(b, &ofMetrics)
	}
	o.deliverer.deliverAll(o.ctx, b, k)
}
