//go:build amd64 || arm64

package customlabelsreceiver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadata"
)

// A batch is what was sampled in one interval.
type batch struct {
	builder     *profile.Builder
	processes   map[uint64]*process.Process // by handle; keeps them while the batch lives
	startMono   uint64                      // CLOCK_MONOTONIC
	endMono     uint64                      // when it was handed over
	clockOffset uint64                      // from CLOCK_MONOTONIC to Unix time
}

// exporter builds profiles from batches and hands them to the next consumer, on
// a goroutine of its own. At most max_pending_batches wait; what comes beyond
// that is dropped and counted, because reading must not wait.
type exporter struct {
	log      *zap.Logger
	report   func(error)
	next     xconsumer.Profiles
	counts   *counts
	table    *process.Table
	resolver *resolver

	ctx     context.Context
	cancel  context.CancelFunc
	pending chan *batch
	idle    chan *batch // emptied batches, to be used again
	done    sync.WaitGroup
	refused bool
	options profile.Options
}

func newExporter(
	cfg *Config,
	set receiver.Settings,
	next xconsumer.Profiles,
	report func(error),
	c *counts,
	table *process.Table,
	fs procfs.FS,
) *exporter {
	var symbols *symbolizer
	if cfg.Symbolize == SymbolizeLocal {
		symbols = newSymbolizer(set.Logger, fs)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &exporter{
		log:      set.Logger,
		report:   report,
		next:     next,
		counts:   c,
		table:    table,
		resolver: newResolver(symbols),
		ctx:      ctx,
		cancel:   cancel,
		pending:  make(chan *batch, cfg.MaxPendingBatches),
		idle:     make(chan *batch, 2),
		options: profile.Options{
			Period:           time.Duration(int64(time.Second) / int64(cfg.SamplesPerSecond)),
			LabelPrefix:      cfg.Labels.Prefix,
			TraceAttributes:  cfg.TraceAttributes,
			ThreadAttributes: cfg.ThreadAttributes,
			CPUAttribute:     cfg.CPUAttribute,
			ScopeName:        metadata.ScopeName,
			ScopeVersion:     set.BuildInfo.Version,
		},
	}
}

// newBatch returns an empty batch that begins now.
func (e *exporter) newBatch() *batch {
	var b *batch
	select {
	case b = <-e.idle:
	default:
		b = &batch{builder: profile.NewBuilder(e.options), processes: map[uint64]*process.Process{}}
	}
	b.clockOffset, b.startMono = clockOffset()
	return b
}

// recycle empties a batch for newBatch.
func (e *exporter) recycle(b *batch) {
	b.builder.Reset()
	clear(b.processes)
	select {
	case e.idle <- b:
	default:
	}
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
	case e.pending <- b:
	default:
		e.counts.dropped[dropPendingFull].Add(int64(n))
		e.recycle(b)
	}
}

func (e *exporter) start() {
	e.done.Go(func() {
		for b := range e.pending {
			e.export(b)
			e.table.EndInterval()
			e.recycle(b)
		}
	})
}

// finish waits until everything that is pending has been handed over. When ctx
// ends first, the consumer's context does too.
func (e *exporter) finish(ctx context.Context) {
	stop := context.AfterFunc(ctx, e.cancel)
	defer stop()
	close(e.pending)
	e.done.Wait()
	e.cancel()
}

func (e *exporter) export(b *batch) {
	n := int64(b.builder.Samples())
	e.resolver.begin(b.processes)
	profiles, stats := b.builder.Build(e.resolver, b.startMono+b.clockOffset, b.endMono+b.clockOffset)
	e.counts.countBuild(stats)
	err := e.next.ConsumeProfiles(e.ctx, profiles)
	if err != nil {
		e.counts.dropped[dropRefused].Add(n)
		e.log.Error("the next consumer refused a batch", zap.Int64("samples", n), zap.Error(err))
		e.report(fmt.Errorf("the next consumer refuses profiles: %w", err))
		e.refused = true
		return
	}
	e.counts.emitted.Add(n)
	if e.refused {
		e.refused = false
		e.report(nil)
	}
}
