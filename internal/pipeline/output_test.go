//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
)

// blocked is a next consumer that does not return until it may, or its context ends.
type blocked struct {
	consumertest.ProfilesSink
	may chan struct{}
}

func (b *blocked) ConsumeProfiles(ctx context.Context, p pprofile.Profiles) error {
	select {
	case <-b.may:
		return b.ProfilesSink.ConsumeProfiles(ctx, p)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A shutdown without a deadline of its own ends although a consumer blocks: what that was not given
// counts as refused, and the consumer of the other signal gets all.
func TestShutdownPatience(t *testing.T) {
	for _, wait := range []struct {
		patience time.Duration
		in       func(context.Context) (context.Context, context.CancelFunc)
	}{
		{time.Millisecond, context.WithCancel},
		{time.Hour, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Millisecond)
		}},
	} {
		e, _, metrics := meteredOutput(true, func(o *Options) {
			o.Next.Profiles, o.ShutdownPatience = &blocked{}, wait.patience
		})
		for range 2 {
			b := e.newBatch(e.cpu)
			fill(b, 10, 5, "tenant")
			e.enqueue(b)
		}
		e.start()
		ctx, cancel := wait.in(context.Background())
		e.finish(ctx)
		cancel()
		require.EqualValues(t, 10, e.cpu.dropped[DropRefused].Load())
		require.Zero(t, e.cpu.emitted.Load())
		require.Equal(t, 10, metrics.samples("tenant"))
	}
}

// hangingNames are names of functions in perf maps that never answer until answer is closed.
type hangingNames struct {
	asked  chan struct{} // has one for each map that was asked for
	answer chan struct{}
	// handOver hands over a batch of a process of its own, with such a map.
	handOver func()
}

// namesHang has lookups wait for perf maps that hang.
func namesHang(t *testing.T, d *aggregator, proc string, wait time.Duration) hangingNames {
	const code, most, firstPID = 0x10000, 32, 2
	h := hangingNames{asked: make(chan struct{}, most), answer: make(chan struct{})}
	d.output.symbols.maps = symbol.NewPerfMaps[uint64](symbol.CacheOptions{Wait: wait, Work: func(uint32, func()) {
		h.asked <- struct{}{}
		<-h.answer
	}})
	pid := firstPID
	h.handOver = func() {
		maps := filepath.Join(proc, fmt.Sprint(pid), "maps")
		require.NoError(t, os.MkdirAll(filepath.Dir(maps), 0o755))
		require.NoError(t, os.WriteFile(maps, fmt.Appendf(nil, "%08x-%08x r-xp 00000000 00:00 0\n", code, code+0x1000), 0o600))
		rec := readRunning(t, d, proc, pid, "/bin/p", "")
		rec.UserFrames = []uint64{code}
		handOverAgain(d, rec)
		pid++
	}
	return h
}

// Batches do not wait for files that do not answer while others wait behind them.
func TestNamesDoNotDelay(t *testing.T) {
	const pending, long = 8, 4 * time.Minute
	d, proc := testAggregator(t, func(o *Options) {
		o.Next.Profiles, o.Symbols.Skip, o.Batches.MaxPending = new(consumertest.ProfilesSink), false, pending
	}, nil)
	defer runTable(t, d)()
	names := namesHang(t, d, proc, long)
	for range pending {
		names.handOver()
	}
	d.output.start()
	const hurried = pending - 1 - pending/hurryShare
	assert.Eventually(t, func() bool { return d.stream.emitted.Load() == hurried }, long/8, time.Millisecond)
	assert.Never(t, func() bool { return d.stream.emitted.Load() > hurried }, 100*time.Millisecond, 10*time.Millisecond, "there is time")
	close(names.answer)
	d.output.finish(t.Context())
	require.EqualValues(t, pending, d.stream.emitted.Load())
	d.output.symbols.close()
}

// A batch whose names are waited for already goes on without them when others come behind it: none is dropped.
func TestNamesEndTheirDelay(t *testing.T) {
	const pending, long, batches = 4, 4 * time.Minute, 15
	d, proc := testAggregator(t, func(o *Options) {
		o.Next.Profiles, o.Symbols.Skip, o.Batches.MaxPending = new(consumertest.ProfilesSink), false, pending
		o.ReportInterval = 100 * time.Millisecond
	}, nil)
	defer runTable(t, d)()
	names := namesHang(t, d, proc, long)
	d.output.start()
	for range batches {
		names.handOver()
		require.Eventually(t, func() bool { return len(d.stream.pending) <= pending/hurryShare }, long/8, time.Millisecond)
	}
	require.Zero(t, d.stream.dropped[DropPendingFull].Load())
	require.GreaterOrEqual(t, d.stream.emitted.Load(), int64(batches-1-pending/hurryShare))
	close(names.answer)
	d.output.finish(t.Context())
	require.EqualValues(t, batches, d.stream.emitted.Load())
	d.output.symbols.close()
}

// Batches of either stream end a delay, as both wait for one goroutine; early ones do not, which one user may have
// many of.
func TestWhatEndsDelays(t *testing.T) {
	const long, pending, many = 4 * time.Minute, 8, 1 + 8/hurryShare
	options := func(o *Options) {
		o.Next.Profiles, o.Symbols.Skip, o.Batches.MaxPending = new(consumertest.ProfilesSink), false, pending
	}
	d, proc := testAggregator(t, options, nil)
	defer runTable(t, d)()
	o, _ := testOptions(options)
	offCPU := newStream(o, profile.KindOffCPU, &unhurried{}, &d.counts.users, d.memory)
	d.output.pending[profile.KindOffCPU] = offCPU.pending
	enqueue := func(of *stream, early bool) {
		for range many {
			b := d.output.newBatch(of)
			fill(b, 20, 1, "tenant")
			b.early = early
			d.output.enqueue(b)
		}
	}
	names := namesHang(t, d, proc, long)
	names.handOver()
	enqueue(offCPU, false)
	began := time.Now()
	b := <-d.stream.pending
	d.output.export(b)
	d.output.recycle(b)
	assert.Less(t, time.Since(began), long/8, "what waits already")
	<-names.asked

	d.output.start()
	want := int64(1 + many)
	emitted := func() int64 { return d.stream.emitted.Load() + offCPU.emitted.Load() }
	goesOn := func() {
		t.Helper()
		require.Eventually(t, func() bool { return emitted() == want }, long/8, time.Millisecond)
	}
	goesOn()
	for _, of := range []*stream{d.stream, offCPU} {
		names.handOver()
		<-names.asked
		enqueue(d.stream, true)
		assert.Never(t, func() bool { return emitted() > want }, 100*time.Millisecond, 10*time.Millisecond, "early ones come")
		enqueue(of, false)
		want += 1 + 2*many
		goesOn()
	}
	close(names.answer)
	d.output.finish(t.Context())
	d.output.symbols.close()
}

// A shutdown does not wait for files that do not answer, once what they are for is only going to be refused.
func TestShutdownStopsNames(t *testing.T) {
	d, proc := testAggregator(t, func(o *Options) {
		o.Next.Profiles, o.ShutdownPatience, o.Symbols.Skip = &blocked{}, 10*time.Millisecond, false
	}, nil)
	defer runTable(t, d)()
	const long = 4 * time.Minute
	names := namesHang(t, d, proc, long)
	names.handOver()
	names.handOver()
	d.output.start()
	<-names.asked
	finished := make(chan struct{})
	go func() {
		d.output.finish(t.Context())
		close(finished)
	}()
	refused := func() bool { return d.stream.dropped[DropRefused].Load() == 2 }
	assert.Eventually(t, refused, long/6, time.Millisecond)
	close(names.answer)
	<-finished
	d.output.symbols.close()
}

// While the next consumer blocks, processes that have exited leave the table; their samples, which wait,
// have their resources and labels when it goes on. Nothing of them is held afterwards.
func TestBlockedConsumer(t *testing.T) {
	const container = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	next := &blocked{may: make(chan struct{})}
	d, proc := testAggregator(t, func(o *Options) {
		o.Next.Profiles, o.ReportInterval = next, time.Millisecond
	}, nil)
	d.output.start()
	handOver := func() {
		d.handOver()
		d.batch = d.output.newBatch(d.stream)
	}
	const processes = 3
	var handles []uint64
	for pid := 2; pid < 2+processes; pid++ {
		rec := readProcess(t, d, proc, pid, fmt.Sprintf("/bin/p%d", pid), container)
		rec.Labels = oneLabel("of", fmt.Sprint(pid))
		d.add(rec, timeOff{})
		handles = append(handles, d.sample.Process)
		handOver()
		d.table.HandleEvent(record.Event{Kind: record.EventExit, Process: rec.Process})
	}
	require.Eventually(t, func() bool {
		handOver() // of an interval without samples
		return d.table.Stats().Processes == 0
	}, time.Minute, time.Millisecond)
	for _, handle := range handles {
		_, held := d.table.Process(handle)
		require.True(t, held)
	}
	require.Zero(t, next.SampleCount())

	close(next.may)
	d.output.finish(t.Context())
	require.Len(t, next.AllProfiles(), processes)
	for i, p := range next.AllProfiles() {
		pid := 2 + i
		resource := p.ResourceProfiles().At(0).Resource().Attributes().AsRaw()
		require.EqualValues(t, pid, resource["process.pid"])
		require.Equal(t, fmt.Sprintf("/bin/p%d", pid), resource["process.executable.path"])
		require.Equal(t, container, resource["container.id"])
		labels := map[string]any{}
		dictionary := p.Dictionary()
		sample := p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0)
		for _, at := range sample.AttributeIndices().All() {
			a := dictionary.AttributeTable().At(int(at))
			labels[dictionary.StringTable().At(int(a.KeyStrindex()))] = a.Value().AsRaw()
		}
		require.Equal(t, fmt.Sprint(pid), labels[Defaults().Labels.Prefix+"of"])
	}
	for _, handle := range handles {
		_, held := d.table.Process(handle)
		require.False(t, held)
	}
}

// Functions that are not on stacks any more make room when the samples of some intervals have been handed
// over, and not while the next consumer blocks: its samples may have them.
func TestFunctionsMakeRoom(t *testing.T) {
	next := &blocked{may: make(chan struct{})}
	d, proc := testAggregator(t, func(o *Options) {
		o.Next.Profiles, o.ReportInterval = next, time.Millisecond
	}, nil)
	d.output.start()
	defer runTable(t, d)()
	rec := readRunning(t, d, proc, 2, "/bin/p", "")
	d.add(rec, timeOff{})
	p, held := d.table.Process(d.sample.Process)
	require.True(t, held)
	object := uint64(0x7f0000000000)
	want := func() (refused bool) { // another one
		before := d.table.Stats().FunctionsRefused
		d.table.WantFunctions(p, 10, []uint64{uint64(record.NewRuntimeWord(record.RuntimeCPython, 1, 2)), object})
		object += 64
		return d.table.Stats().FunctionsRefused > before
	}
	for !want() {
	}
	require.Eventually(t, func() bool { return !d.table.ReadsFunctions(p) }, time.Minute, time.Millisecond)

	const intervals = 20 // more than functions are kept for
	for range intervals {
		handOverAgain(d, rec)
		time.Sleep(2 * d.output.interval)
	}
	require.True(t, want())
	close(next.may)
	require.Eventually(t, func() bool {
		handOverAgain(d, rec)
		return !want()
	}, time.Minute, 2*d.output.interval)
	d.output.finish(t.Context())
}

// A batch waits for functions no longer than its interval allows, and not once its context has ended: the
// batches behind it are everybody's.
func TestFunctionsAwaited(t *testing.T) {
	const interval = 400 * time.Millisecond
	d, proc := testAggregator(t, func(o *Options) { o.ReportInterval, o.Symbols.Skip = interval, false }, nil)
	defer d.output.symbols.close()
	d.add(readProcess(t, d, proc, 2, "/bin/p", ""), timeOff{})
	p, held := d.table.Process(d.sample.Process)
	require.True(t, held)
	d.table.WantFunctions(p, 10, []uint64{uint64(record.NewRuntimeWord(record.RuntimeCPython, 1, 2)), 0x7f0000000000})
	require.True(t, d.table.ReadsFunctions(p), "nobody reads them")
	waits := func(ctx context.Context) time.Duration {
		began := time.Now()
		d.output.symbols.awaitFunctions(ctx, map[uint64]*process.Process{1: p})
		return time.Since(began)
	}
	require.Equal(t, interval/functionsShare, d.output.symbols.patience)
	require.Less(t, d.output.symbols.patience, functionsPatience)
	require.GreaterOrEqual(t, waits(t.Context()), d.output.symbols.patience)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	d.output.symbols.patience = time.Hour
	require.Less(t, waits(ended), time.Minute)
}

// handOverAgain hands over a batch that has a sample.
func handOverAgain(d *aggregator, rec *bpf.Record) {
	d.add(rec, timeOff{})
	d.handOver()
	d.batch = d.output.newBatch(d.stream)
}
