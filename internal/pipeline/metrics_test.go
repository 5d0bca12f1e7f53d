//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// meter is a next consumer of metrics; it keeps the last value of each label.
type meter struct {
	mu       sync.Mutex
	last     map[string]float64 // by the label tenant
	calls    int
	refuse   bool
	refuseAt int  // the call with this number
	block    bool // until the context ends
}

func (m *meter) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (m *meter) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	if m.block {
		<-ctx.Done()
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.refuse || m.calls == m.refuseAt {
		return errors.New("not now")
	}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, p := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
			tenant, _ := p.Attributes().Get("key-tenant")
			m.last[tenant.Str()] = p.DoubleValue()
		}
	}
	return nil
}

// meteredOutput has a consumer of metrics, and one of profiles if wanted.
func meteredOutput(profiles bool, change func(*Options)) (cpuOutput, *recorder, *meter) {
	m := &meter{last: map[string]float64{}}
	o, out := testOptions(func(o *Options) {
		o.SamplesPerSecond = 100
		o.Metrics.LabelKeys = []string{"key-tenant"}
		o.Next.Metrics = m
		if !profiles {
			o.Next.Profiles = nil
		}
		change(o)
	})
	fs := procfs.FS{Root: "/nowhere"}
	table := process.NewTable(process.Options{FS: fs, Publisher: unpublished{}})
	return newCPUOutput(o, table, fs), out, m
}

func (m *meter) samples(tenant string) int { return int(math.Round(m.last[tenant] * 100)) }

// A batch is in the metrics once, whatever becomes of its profiles.
func TestMeteringOnce(t *testing.T) {
	e, out, m := meteredOutput(true, func(o *Options) { o.Batches.MaxPending = 1 })
	enqueue := func(n int) {
		b := e.newBatch(e.cpu)
		fill(b, 10, n, "tenant")
		e.enqueue(b)
	}
	enqueue(1)
	enqueue(20) // finds no room
	require.EqualValues(t, 20, e.cpu.dropped[DropPendingFull].Load())
	e.start()
	e.finish(t.Context())
	require.Len(t, out.calls, 1)
	require.Equal(t, 1, out.calls[0].samples)
	require.Equal(t, 21, m.samples("tenant"))
	require.EqualValues(t, 21, e.cpu.metered.Load())

	e, out, m = meteredOutput(true, func(*Options) {})
	out.refuse = -1
	enqueue(300)
	e.start()
	e.finish(t.Context())
	require.EqualValues(t, 300, e.cpu.dropped[DropRefused].Load())
	require.Equal(t, 300, m.samples("tenant"))
}

// Without a consumer of profiles the samples are emitted as metrics, and none is dropped
// for want of room.
func TestMeteringAlone(t *testing.T) {
	e, out, m := meteredOutput(false, func(o *Options) { o.Batches.MaxPending = 1 })
	for range 3 {
		b := e.newBatch(e.cpu)
		fill(b, 10, 5, "tenant")
		e.enqueue(b)
	}
	e.start()
	e.finish(t.Context())
	require.Empty(t, out.calls)
	require.Equal(t, 15, m.samples("tenant"))
	require.EqualValues(t, 15, e.cpu.emitted.Load())
	require.Zero(t, e.cpu.dropped[DropPendingFull].Load())
}

// What is refused comes with the next metrics; a consumer that blocks is left when the
// shutdown may take no longer.
func TestMeteringRefused(t *testing.T) {
	core, said := observer.New(zap.WarnLevel)
	e, _, m := meteredOutput(false, func(o *Options) { o.ShutdownPatience, o.Logger = time.Millisecond, zap.New(core) })
	m.refuse = true
	b := e.newBatch(e.cpu)
	fill(b, 10, 7, "tenant")
	b.endMono = monotonicNow()
	e.export(b)
	e.metering.collect()
	require.EqualValues(t, 1, e.counts.collections[CollectionRefused].Load())
	require.Zero(t, m.samples("tenant"))
	m.refuse = false
	e.metering.collect()
	require.EqualValues(t, 1, e.counts.collections[CollectionAccepted].Load())
	require.Equal(t, 7, m.samples("tenant"))

	b = e.newBatch(e.cpu)
	fill(b, 10, 3, "tenant")
	b.endMono = monotonicNow()
	e.export(b)
	m.block = true
	e.start()
	e.finish(t.Context())
	require.EqualValues(t, 2, e.counts.collections[CollectionRefused].Load())
	lost := said.FilterLevelExact(zap.WarnLevel).All()
	require.Len(t, lost, 1)
	require.Equal(t, "The receiver ends with time that the next consumer of metrics has not accepted: it is lost.", lost[0].Message)
	require.Equal(t, map[string]any{"cpu_seconds": 0.03, "off_cpu_seconds": 0.0}, lost[0].ContextMap())
}

// Where all was accepted, the end says nothing.
func TestMeteringAcceptedEnds(t *testing.T) {
	core, said := observer.New(zap.WarnLevel)
	e, _, m := meteredOutput(false, func(o *Options) { o.Logger = zap.New(core) })
	b := e.newBatch(e.cpu)
	fill(b, 10, 7, "tenant")
	e.export(b)
	e.start()
	e.finish(t.Context())
	require.Equal(t, 7, m.samples("tenant"))
	require.Empty(t, said.All())
}

// A request that is refused takes none of the others with it.
func TestMeteringRefusedInPart(t *testing.T) {
	e, _, m := meteredOutput(false, func(o *Options) { o.Batches.MaxRequestBytes = 1 })
	m.refuseAt = 2
	for process := range uint32(3) {
		b := e.newBatch(e.cpu)
		fill(b, 10+process, 7, "tenant")
		b.endMono = monotonicNow()
		e.export(b)
	}
	e.metering.collect()
	require.Equal(t, 3, m.calls)
	require.EqualValues(t, 1, e.counts.collections[CollectionRefused].Load())
	left := 0.0
	for _, metrics := range e.metering.sums.Collect(1, func(uint64) bool { return true }).Metrics { // the clock is set back
		for _, rm := range metrics.ResourceMetrics().All() {
			left += rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).DoubleValue()
		}
	}
	require.InDelta(t, 0.07, left, 1e-9, "what was refused")
}

// Series of samples without a process, for which the table has no room, go like those of a process that has ended.
func TestMeteringForgets(t *testing.T) {
	const unknown, ended = 0, 10
	e, _, _ := meteredOutput(false, func(o *Options) { o.Metrics.Expiry = 1 })
	for _, process := range []uint32{unknown, ended} {
		b := e.newBatch(e.cpu)
		fill(b, process, 5, "tenant")
		b.endMono = monotonicNow()
		e.export(b)
		e.metering.collect()
		require.Positive(t, e.metering.sums.Series())
		e.metering.collect()
		require.Zero(t, e.metering.sums.Series(), "process %d", process)
		require.Zero(t, e.metering.memory.Part(budget.OfMetrics))
	}
}

// Where memory is short, also series of a process that lives go when they are quiet.
func TestMeteringShrinks(t *testing.T) {
	e, _, _ := meteredOutput(false, func(o *Options) { o.Metrics.Expiry = 1 })
	b := e.newBatch(e.cpu)
	lives := e.table.Lookup(record.ProcessID{TGID: 10, StartNs: 1}, 10, 0, nil)
	fill(b, uint32(lives.Handle()), 5, "tenant")
	b.endMono = monotonicNow()
	e.export(b)
	for range 2 {
		e.metering.collect()
		require.Positive(t, e.metering.sums.Series())
	}
	memory := e.metering.memory
	memory.Add(budget.OfSymbols, int(memory.Limit()))
	e.metering.collect()
	require.Zero(t, e.metering.sums.Series())
	require.Zero(t, memory.Part(budget.OfMetrics))
}

// Without profiles no option that only they have costs anything.
func TestWithoutProfiles(t *testing.T) {
	o := Defaults()
	only := o.withoutProfiles()
	require.True(t, only.Labels.Skip, "no label is asked for")
	require.True(t, only.Unwind.Skip)
	require.True(t, only.Unwind.FramePointersOnly)
	require.True(t, only.Symbols.Skip)
	require.Equal(t, Defaults(), o)
	o.Metrics.LabelKeys = []string{"tenant"}
	require.False(t, o.withoutProfiles().Labels.Skip)
	e, _, _ := meteredOutput(false, func(*Options) {})
	require.Nil(t, e.symbols)
	require.Nil(t, e.deliverer)
}
