//go:build amd64 || arm64

package customlabelsreceiver

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadata"
)

// A lane is the way of one kind of profile to the next consumer. At most
// max_pending_batches wait in it; what comes beyond that is dropped and counted,
// because reading must not wait. Lanes do not take each other's room.
type lane struct {
	options profile.Options
	pending chan *batch
	idle    chan *batch // emptied batches, to be used again

	emitted, pendingFull, refused, noMemory *atomic.Int64
	filtered                                *[numFilterReasons]atomic.Int64
}

// A batch is what was sampled in one interval.
type batch struct {
	lane        *lane
	builder     *profile.Builder
	processes   map[uint64]*process.Process // by handle; keeps them while the batch lives
	startMono   uint64                      // CLOCK_MONOTONIC
	endMono     uint64                      // when it was handed over
	clockOffset uint64                      // from CLOCK_MONOTONIC to Unix time

	held   weight // of builder
	labels int    // bytes of label sets that their cache has let go of
}

// exporter builds profiles from batches and hands them to the next consumer, on
// a goroutine of its own.
type exporter struct {
	log      *zap.Logger
	report   func(error)
	next     xconsumer.Profiles
	counts   *counts
	table    *process.Table
	resolver *resolver

	ctx      context.Context
	cancel   context.CancelFunc
	cpu      *lane
	offCPU   *lane // nil: none
	done     sync.WaitGroup
	refused  bool
	memory   *budget.Memory
	interval time.Duration
	endedAt  time.Time // the last interval, for the process table
}

func newExporter(
	cfg *Config,
	set receiver.Settings,
	next xconsumer.Profiles,
	report func(error),
	c *counts,
	table *process.Table,
	fs procfs.FS,
	limits budgets,
) *exporter {
	var symbols *symbolizer
	if cfg.Symbolize == SymbolizeLocal {
		symbols = newSymbolizer(set.Logger, fs, table, cfg.MaxSymbolBytes, &limits)
	}
	ctx, cancel := context.WithCancel(context.Background())
	options := profile.Options{
		Period:           time.Duration(int64(time.Second) / int64(cfg.SamplesPerSecond)),
		LabelPrefix:      cfg.Labels.Prefix,
		TraceAttributes:  cfg.TraceAttributes,
		ThreadAttributes: cfg.ThreadAttributes,
		CPUAttribute:     cfg.CPUAttribute,
		ScopeName:        metadata.ScopeName,
		ScopeVersion:     set.BuildInfo.Version,
	}
	e := &exporter{
		log:      set.Logger,
		report:   report,
		next:     next,
		counts:   c,
		table:    table,
		resolver: newResolver(symbols, newOmission(&cfg.Targets)),
		ctx:      ctx,
		cancel:   cancel,
		cpu:      newLane(cfg, options),
		interval: cfg.ReportInterval,
		memory:   limits.memory,
	}
	e.cpu.emitted, e.cpu.pendingFull, e.cpu.refused = &c.emitted, &c.dropped[dropPendingFull], &c.dropped[dropRefused]
	e.cpu.noMemory, e.cpu.filtered = &c.dropped[dropNoMemory], &c.filtered
	if cfg.OffCPUThreshold > 0 {
		options.OffCPU = &profile.OffCPU{Threshold: cfg.OffCPUThreshold, Minimum: cfg.OffCPUMinimum}
		off := &c.offCPU
		e.offCPU = newLane(cfg, options)
		e.offCPU.emitted, e.offCPU.pendingFull, e.offCPU.refused = &off.emitted, &off.dropped[offCPUPendingFull], &off.dropped[offCPURefused]
		e.offCPU.noMemory, e.offCPU.filtered = &off.dropped[offCPUNoMemory], &off.filtered
	}
	return e
}

func newLane(cfg *Config, options profile.Options) *lane {
	return &lane{options: options, pending: make(chan *batch, cfg.MaxPendingBatches), idle: make(chan *batch, 2)}
}

// newBatch returns an empty batch that begins now.
func (e *exporter) newBatch(l *lane) *batch {
	var b *batch
	select {
	case b = <-l.idle:
	default:
		b = &batch{lane: l, builder: profile.NewBuilder(l.options), processes: map[uint64]*process.Process{}}
	}
	b.clockOffset, b.startMono = clockOffset()
	return b
}

// recycle empties a batch for newBatch.
func (e *exporter) recycle(b *batch) {
	b.builder.Reset()
	clear(b.processes)
	e.memory.Add(budget.OfLabels, -b.labels)
	b.labels = 0
	b.held.set(e.memory, budget.OfBatches, b.builder.Held())
	if e.memory.Pressure() < budget.Tight {
		select {
		case b.lane.idle <- b:
			return
		default:
		}
	}
	b.held.forget(e.memory, budget.OfBatches)
}

// enqueue passes a batch on or drops it; it never waits.
func (e *exporter) enqueue(b *batch) {
	b.endMono = monotonicNow()
	n := b.builder.Samples()
	if n == 0 {
		e.recycle(b)
		return
	}
	select {
	case b.lane.pending <- b:
	default:
		b.lane.pendingFull.Add(int64(n))
		e.recycle(b)
	}
}

func (e *exporter) start() {
	cpu, offCPU := e.cpu.pending, chan *batch(nil)
	if e.offCPU != nil {
		offCPU = e.offCPU.pending
	}
	e.done.Go(func() {
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
				e.counts.limits[limitSymbolsDropped].Add(e.resolver.symbolizer.weigh(e.memory))
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
}

func (e *exporter) export(b *batch) {
	output := b.builder.OutputBytes()
	e.memory.Add(budget.OfOutput, output)
	defer e.memory.Add(budget.OfOutput, -output)
	e.resolver.begin(b.processes)
	profiles, stats := b.builder.Build(e.resolver, b.startMono+b.clockOffset, b.endMono+b.clockOffset)
	e.resolver.end()
	e.counts.countBuild(stats)
	for reason, n := range e.resolver.leftOut {
		b.lane.filtered[reason].Add(n)
	}
	n := int64(stats.Samples)
	if n == 0 {
		return
	}
	err := e.next.ConsumeProfiles(e.ctx, profiles)
	if err != nil {
		b.lane.refused.Add(n)
		e.log.Error("the next consumer refused a batch", zap.Int64("samples", n), zap.Error(err))
		e.report(fmt.Errorf("the next consumer refuses profiles: %w", err))
		e.refused = true
		return
	}
	b.lane.emitted.Add(n)
	if e.refused {
		e.refused = false
		e.report(nil)
	}
}
