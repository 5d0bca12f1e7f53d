//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/cputime"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// pointBytes is what a data point takes until the next consumer has it, roughly.
const pointBytes = 512

// metering adds batches to the sums by process and label, and hands these to the next
// consumer of metrics from time to time, on a goroutine of its own. Sums are cumulative:
// what the consumer refuses, or is too slow for, comes with the next ones.
type metering struct {
	refusals refusals
	report   func(Concern, error)
	next     consumer.Metrics
	calls    calls // of next
	sums     *cputime.Sums
	counts   *counts
	alive    func(process uint64) bool
	memory   *budget.Memory
	interval time.Duration
	patience time.Duration // of the shutdown

	ctx     context.Context
	cancel  context.CancelFunc
	stop    chan struct{}
	done    sync.WaitGroup
	refused bool
}

func newMetering(o *Options, c *counts, table *process.Table, memory *budget.Memory) *metering {
	ctx, cancel := context.WithCancel(context.Background())
	return &metering{
		refusals: newRefusals(o.Logger, "metrics"), report: o.Report, next: o.Next.Metrics,
		calls: newCalls(o.Logger, "metrics"), counts: c, memory: memory,
		sums: cputime.New(cputime.Options{
			LabelKeys: o.Metrics.LabelKeys,
			Period:    o.period(),
			MaxSeries: o.Metrics.MaxUserSeries,
			MaxBytes:  o.Labels.Budgets.Bytes,
			MaxUsers:  o.Labels.Budgets.Users,
			Expiry:    o.Metrics.Expiry,
			Excess:    func() int { return memory.Excess() / budget.HeapWeight },

			MaxRequestBytes: o.Batches.MaxRequestBytes,
			ScopeName:       o.Scope.Name,
			ScopeVersion:    o.Scope.Version,
		}),
		alive:    func(handle uint64) bool { return alive(table, handle) },
		interval: o.Metrics.Interval,
		patience: o.ShutdownPatience,
		ctx:      ctx,
		cancel:   cancel,
		stop:     make(chan struct{}),
	}
}

// alive reports whether more samples of a process may come. The one that stands for all beyond the table's bound, which
// the table always has, is none: its series go when no sample of such a process has come for long.
func alive(table *process.Table, handle uint64) bool {
	_, known := table.Process(handle)
	return known && handle != 0
}

// add adds a batch to the sums, whatever becomes of its profiles; it returns how many
// of its samples count. k is what is known of its processes. It never waits for a consumer.
func (m *metering) add(b *batch, k *known) int64 {
	counted := int64(0)
	for _, p := range b.users {
		result := m.sums.Add(p.builder, cputime.Batch{
			Kind: b.stream.kind, User: p.uid,
			StartUnixNano: p.startMono + b.clockOffset, EndUnixNano: b.endMono + b.clockOffset,
			Tight: m.memory.Pressure() >= budget.Scarce,
		}, k)
		m.memory.Add(budget.OfMetrics, result.Bytes)
		counted += int64(result.Counted)
		m.counts.meteredOverflow(p.uid, &result)
	}
	b.stream.metered.Add(counted)
	return counted
}

func (m *metering) start() {
	m.done.Go(func() {
		tick := time.NewTicker(m.interval)
		defer tick.Stop()
		for {
			select {
			case <-m.stop:
				m.collect()
				return
			case <-tick.C:
				m.collect()
			}
		}
	})
}

// finish hands over what the sums are in the end, and says what was not accepted. When ctx ends first, or after its patience,
// the consumer's context does too, and a consumer that goes on nevertheless is left behind.
func (m *metering) finish(ctx context.Context) {
	patient, lost := context.WithTimeout(ctx, m.patience)
	defer lost()
	stop := context.AfterFunc(patient, m.cancel)
	defer stop()
	close(m.stop)
	m.done.Wait()
	m.cancel()
	if left := m.sums.Unaccepted(); left[profile.KindCPU]+left[profile.KindOffCPU] > 0 {
		m.refusals.log.Warn("The receiver ends with time that the next consumer of metrics has not accepted: it is lost.",
			zap.Float64("cpu_seconds", left[profile.KindCPU].Seconds()), zap.Float64("off_cpu_seconds", left[profile.KindOffCPU].Seconds()))
	}
}

// collect hands all sums to the next consumer, however long that takes: ticks that pass
// meanwhile are left out.
func (m *metering) collect() {
	c := m.sums.Collect(uint64(budget.Clock(unix.CLOCK_REALTIME)), m.alive)
	m.memory.Add(budget.OfMetrics, c.Bytes)
	output := c.Points * pointBytes
	m.memory.Add(budget.OfOutput, output)
	defer m.memory.Add(budget.OfOutput, -output)
	var errs []error
	for _, metrics := range c.Metrics {
		errs = append(errs, m.calls.call(m.ctx, func() error { return m.next.ConsumeMetrics(m.ctx, metrics) }))
	}
	if err := errors.Join(errs...); err != nil {
		for i, err := range errs {
			if err == nil {
				m.sums.DeliveredPart(i)
			}
		}
		m.counts.collections[CollectionRefused].Add(1)
		m.refusals.add(err)
		m.report(ConcernMetrics, fmt.Errorf("the next consumer refuses metrics: %w", err))
		m.refused = true
		return
	}
	m.sums.Delivered()
	m.counts.collections[CollectionAccepted].Add(1)
	if m.refused {
		m.refused = false
		m.report(ConcernMetrics, nil)
	}
}
