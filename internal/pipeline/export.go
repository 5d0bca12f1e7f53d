//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/cputime"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// A lane is the way of one kind of profile to the next consumer. At most
// max_pending_batches wait in it; what comes beyond that is dropped and counted,
// because reading must not wait. Lanes do not take each other's room.
type lane struct {
	kind    cputime.Kind
	parts   partPool
	pending chan *batch

	emitted, pendingFull, refused, noMemory *atomic.Int64
	tooLarge                                *atomic.Int64
	metered                                 *atomic.Int64
	filtered                                *[NumFilterReasons]atomic.Int64
	users                                   *userCounts
}

// exporter builds profiles from batches and hands them to the next consumer, on
// a goroutine of its own. Each batch is added to the metrics once, too: there, or where it
// is dropped.
type exporter struct {
	log      *zap.Logger
	report   func(error)
	next     xconsumer.Profiles // nil: no profiles
	metering *metering          // nil: no metrics
	counts   *counts
	table    *process.Table
	resolver *resolver

	ctx      context.Context
	cancel   context.CancelFunc
	cpu      *lane
	offCPU   *lane // nil: none
	byUser   bool  // each user has batches of its own
	done     sync.WaitGroup
	refused  bool
	tooLarge bool // it has been said that an entry was
	memory   *budget.Memory
	interval time.Duration
	request  int       // bytes at most
	endedAt  time.Time // the last interval, for the process table
}

func newExporter(o *Options, c *counts, table *process.Table, fs procfs.FS, limits budgets) *exporter {
	var symbols *symbolizer
	if !o.Symbols.Skip {
		symbols = newSymbolizer(o, fs, table, &limits)
	}
	ctx, cancel := context.WithCancel(context.Background())
	options := profile.Options{
		Period:           o.period(),
		LabelPrefix:      o.Labels.Prefix,
		TraceAttributes:  o.Attributes.Trace,
		ThreadAttributes: o.Attributes.Thread,
		CPUAttribute:     o.Attributes.CPU,
		MaxEntries:       o.Batches.MaxUserEntries,
		ScopeName:        o.Scope.Name,
		ScopeVersion:     o.Scope.Version,
	}
	e := &exporter{
		log:      o.Logger,
		report:   o.Report,
		next:     o.Next.Profiles,
		counts:   c,
		table:    table,
		resolver: newResolver(symbols, newOmission(&o.Targets)),
		ctx:      ctx,
		cancel:   cancel,
		cpu:      newLane(o.Batches.MaxPending, options, limits.memory),
		interval: o.ReportInterval,
		request:  o.Batches.MaxRequestBytes,
		memory:   limits.memory,
		byUser:   o.Batches.PerUser,
	}
	e.cpu.emitted, e.cpu.pendingFull, e.cpu.refused = &c.emitted, &c.dropped[DropPendingFull], &c.dropped[DropRefused]
	e.cpu.noMemory, e.cpu.filtered, e.cpu.users = &c.dropped[DropNoMemory], &c.filtered, &c.byUser
	e.cpu.metered, e.cpu.tooLarge = &c.metered, &c.dropped[DropTooLarge]
	if o.Next.Metrics != nil {
		e.metering = newMetering(o, c, table, limits.memory)
	}
	if o.OffCPU.Threshold > 0 {
		options.OffCPU = &profile.OffCPU{Threshold: o.OffCPU.Threshold, Minimum: o.OffCPU.Minimum}
		off := &c.offCPU
		e.offCPU = newLane(o.Batches.MaxPending, options, limits.memory)
		e.offCPU.emitted, e.offCPU.pendingFull, e.offCPU.refused = &off.emitted, &off.dropped[OffCPUPendingFull], &off.dropped[OffCPURefused]
		e.offCPU.noMemory, e.offCPU.filtered, e.offCPU.users = &off.dropped[OffCPUNoMemory], &off.filtered, &off.byUser
		e.offCPU.metered, e.offCPU.kind = &off.metered, cputime.OffCPU
		e.offCPU.tooLarge = &off.dropped[OffCPUTooLarge]
	}
	return e
}

func newLane(maxPending int, options profile.Options, memory *budget.Memory) *lane {
	return &lane{parts: partPool{options: options, memory: memory}, pending: make(chan *batch, maxPending)}
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
	if e.next == nil {
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
		e.countOverflow(b.lane, p)
	}
	for reason, n := range processes.leftOut {
		b.lane.filtered[reason].Add(n)
	}
	b.lane.emitted.Add(counted)
}

func (e *exporter) countOverflow(l *lane, p *part) {
	sets, stacks := p.builder.Overflown()
	l.users.overflow(e.counts.users.of(p.uid), sets, stacks)
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
		e.resolver.symbolizer.readKernel()
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
				e.counts.limits[LimitSymbolsDropped].Add(e.resolver.symbolizer.weigh(e.memory))
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
	if e.metering != nil {
		e.metering.finish(ctx)
	}
}

func (e *exporter) export(b *batch) {
	e.await(b)
	if e.next == nil {
		e.meter(b)
		return
	}
	var infos map[uint64]*process.Info
	if e.metering != nil {
		_, processes := e.metering.add(b)
		infos = processes.infos
	}
	e.resolver.begin(b.parts, infos)
	defer e.resolver.end()
	if !e.byUser {
		e.deliver(e.ctx, b, b.byUID(), b.startMono)
		return
	}
	for _, p := range b.byUID() {
		e.resolver.only(p.uid)
		e.deliver(userContext(e.ctx, p.uid), b, []*part{p}, p.startMono)
	}
}

// deliver hands parts of a batch to the next consumer: as profiles of one dictionary, or of
// several where they would be too large for a request.
func (e *exporter) deliver(ctx context.Context, b *batch, parts []*part, startMono uint64) {
	builders := make([]*profile.Builder, len(parts))
	output := 0
	for i, p := range parts {
		builders[i] = p.builder
		output += p.builder.OutputBytes()
	}
	e.memory.Add(budget.OfOutput, output)
	defer e.memory.Add(budget.OfOutput, -output)
	start, end := startMono+b.clockOffset, b.endMono+b.clockOffset
	for profiles, stats := range profile.Requests(builders, e.resolver, start, end, e.request) {
		e.counts.countBuild(stats)
		if stats.TooLarge > 0 {
			e.dropTooLarge(b.lane, int64(stats.TooLarge))
		}
		if stats.Samples > 0 {
			e.consume(ctx, b.lane, profiles, int64(stats.Samples))
		}
	}
	for _, p := range parts {
		e.countOverflow(b.lane, p)
	}
	for reason, n := range e.resolver.takeLeftOut() {
		b.lane.filtered[reason].Add(n)
	}
}

// dropTooLarge gives up n samples that no request has room for.
func (e *exporter) dropTooLarge(l *lane, n int64) {
	l.tooLarge.Add(n)
	if !e.tooLarge {
		e.tooLarge = true
		e.log.Warn("What was sampled of a process at one place, with its resource and labels, is too large for max_request_bytes; further such samples are only counted.",
			zap.Int64("samples", n), zap.Int("max_request_bytes", e.request))
	}
}

// consume hands profiles of n samples to the next consumer.
func (e *exporter) consume(ctx context.Context, l *lane, profiles pprofile.Profiles, n int64) {
	err := e.next.ConsumeProfiles(ctx, profiles)
	if err != nil {
		l.refused.Add(n)
		e.log.Error("the next consumer refused a batch", zap.Int64("samples", n), zap.Error(err))
		e.report(fmt.Errorf("the next consumer refuses profiles: %w", err))
		e.refused = true
		return
	}
	l.emitted.Add(n)
	if e.refused {
		e.refused = false
		e.report(nil)
	}
}

// metadataUser is the key under which the context of a batch of one user has its uid, as
// if it had come with a request: exporters and extensions can pass it on.
const metadataUser = "custom_labels.user"

func userContext(ctx context.Context, uid uint32) context.Context {
	return client.NewContext(ctx, client.Info{
		Metadata: client.NewMetadata(map[string][]string{metadataUser: {strconv.FormatUint(uint64(uid), 10)}}),
	})
}
