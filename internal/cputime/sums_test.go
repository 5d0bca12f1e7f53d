package cputime

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const second = uint64(time.Second)

const testRequestBytes = 64 << 10

func testOptions() Options {
	return Options{
		LabelKeys: []string{"tenant", "route"}, Period: 10 * time.Millisecond,
		MaxSeries: 100, MaxBytes: 1 << 20, MaxUsers: 4, Expiry: time.Minute, ScopeName: "scope",
		MaxRequestBytes: testRequestBytes,
	}
}

// fakeProcesses are processes whose resource has their name.
type fakeProcesses struct {
	names    map[uint64]string
	unwanted map[uint64]bool
}

func (f *fakeProcesses) Wanted(process uint64, _ int) bool { return !f.unwanted[process] }

func (f *fakeProcesses) Resource(process uint64, attrs pcommon.Map) {
	name := f.names[process]
	if name == "" {
		name = fmt.Sprint(process)
	}
	attrs.PutStr("process.executable.name", name)
}

func set(kvs ...string) *labels.Set {
	var list []labels.Label
	for i := 0; i < len(kvs); i += 2 {
		list = append(list, labels.Label{Key: kvs[i], Value: kvs[i+1], Source: record.ABIV1})
	}
	return labels.NewSet(false, list...)
}

// a sample of so many hits, or of time off the CPU.
type hits struct {
	process uint64
	set     *labels.Set
	n       int
	state   record.ThreadState
	ns      int64
}

func add(s *Sums, b Batch, r Resolver, list ...hits) Result {
	o := profile.Options{Period: 10 * time.Millisecond, ThreadID: true, ThreadName: true}
	if b.Kind == profile.KindOffCPU {
		o.OffCPU = &profile.OffCPU{Threshold: 1}
	}
	builder := profile.NewBuilder(o)
	for _, h := range list {
		for i := range max(h.n, 1) {
			builder.Add(&profile.Sample{Process: h.process, Set: h.set, TID: uint32(i % 3), State: h.state, OffCPUNs: h.ns})
		}
	}
	return s.Add(builder, b, r)
}

func allAlive(uint64) bool { return true }

func noneAlive(uint64) bool { return false }

// point is what a data point says.
type point struct {
	value       float64
	start, time uint64
}

// points returns all points by metric, resource and attributes, and checks that each is there once.
func points(t *testing.T, all []pmetric.Metrics) map[string]point {
	t.Helper()
	found := map[string]point{}
	for _, m := range all {
		require.LessOrEqual(t, new(pmetric.ProtoMarshaler).MetricsSize(m), testRequestBytes)
		for _, rm := range m.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				require.Equal(t, "scope", sm.Scope().Name())
				for _, metric := range sm.Metrics().All() {
					require.Equal(t, "s", metric.Unit())
					require.True(t, metric.Sum().IsMonotonic())
					require.Equal(t, pmetric.AggregationTemporalityCumulative, metric.Sum().AggregationTemporality())
					for _, p := range metric.Sum().DataPoints().All() {
						name := fmt.Sprintf("%s %v %v", metric.Name(), sorted(rm.Resource().Attributes()), sorted(p.Attributes()))
						require.NotContains(t, found, name)
						require.LessOrEqual(t, p.StartTimestamp(), p.Timestamp())
						found[name] = point{p.DoubleValue(), uint64(p.StartTimestamp()), uint64(p.Timestamp())}
					}
				}
			}
		}
	}
	return found
}

func sorted(m pcommon.Map) string { return fmt.Sprint(m.AsRaw()) }

func values(found map[string]point) map[string]float64 {
	out := map[string]float64{}
	for name, p := range found {
		out[name] = math.Round(p.value*1e9) / 1e9
	}
	return out
}

func TestSumsByProcessAndLabel(t *testing.T) {
	s := New(testOptions())
	r := &fakeProcesses{unwanted: map[uint64]bool{3: true}}
	a, b := set("tenant", "a", "request", "1"), set("request", "2", "tenant", "a")
	batch := Batch{User: 7, StartUnixNano: 100 * second, EndUnixNano: 105 * second}
	result := add(s, batch, r,
		hits{process: 1, set: a, n: 3}, hits{process: 1, set: b, n: 4}, hits{process: 1, n: 5},
		hits{process: 1, set: set("tenant", "", "route", ""), n: 1},
		hits{process: 1, set: set("tenant", "a", "route", "\xff"), n: 2},
		hits{process: 2, set: a, n: 6}, hits{process: 3, set: a, n: 1000})
	require.Equal(t, 21, result.Counted)
	require.Zero(t, result.LostLabels+result.LostOwner)
	require.Equal(t, s.bytes, result.Bytes)
	off := batch
	off.Kind = profile.KindOffCPU
	add(s, off, r,
		hits{process: 1, set: a, state: record.ThreadSleeping, ns: 2_500_000_000},
		hits{process: 1, set: b, state: record.ThreadSleeping, ns: 1},
		hits{process: 1, set: a, state: record.ThreadRunnable, ns: 3})

	c := s.Collect(106*second, allAlive)
	found := points(t, c.Metrics)
	const one, two = "map[process.executable.name:1 process.real_user.id:7]", "map[process.executable.name:2 process.real_user.id:7]"
	require.Equal(t, map[string]float64{
		"custom_labels.cpu.time " + one + " map[tenant:a]":                                         0.07,
		"custom_labels.cpu.time " + one + " map[]":                                                 0.06,
		"custom_labels.cpu.time " + one + ` map[route:\xff tenant:a]`:                              0.02,
		"custom_labels.cpu.time " + two + " map[tenant:a]":                                         0.06,
		"custom_labels.off_cpu.time " + one + " map[custom_labels.thread_state:sleeping tenant:a]": 2.500000001,
		"custom_labels.off_cpu.time " + one + " map[custom_labels.thread_state:runnable tenant:a]": 3e-9,
	}, values(found))
	require.Equal(t, len(found), c.Points)
	for name, p := range found {
		require.Equal(t, point{p.value, 100 * second, 106 * second}, p, name)
	}
	require.Equal(t, 6, s.Series())
	require.Len(t, s.accounts, 1)

	// Later batches add up; the start stays.
	batch.StartUnixNano, batch.EndUnixNano = 105*second, 110*second
	add(s, batch, r, hits{process: 2, set: set("tenant", "a"), n: 1})
	p := points(t, s.Collect(105*second, allAlive).Metrics)["custom_labels.cpu.time "+two+" map[tenant:a]"]
	require.Equal(t, point{0.07, 100 * second, 106*second + 1}, p, "the clock has gone back a little, and the points have not")
}

// When the clock has been set back, times do not wait for it to be where it was: sums begin anew, with
// what was not accepted before.
func TestSumsClockSetBack(t *testing.T) {
	const ahead = 3600 * second
	s := New(testOptions())
	sum := func(now uint64) point {
		for _, p := range points(t, s.Collect(now, allAlive).Metrics) {
			return p
		}
		return point{}
	}
	add1 := func(end uint64) {
		add(s, Batch{StartUnixNano: end - 5*second, EndUnixNano: end}, &fakeProcesses{}, hits{process: 1})
	}
	add1(ahead + 100*second)
	require.Equal(t, point{0.01, ahead + 95*second, ahead + 100*second}, sum(ahead+100*second))
	s.Delivered()
	add1(ahead + 105*second)
	require.Equal(t, point{0.02, ahead + 95*second, ahead + 105*second}, sum(ahead+105*second), "which is refused")
	add1(ahead + 110*second)
	require.Equal(t, point{0.02, 110 * second, 110 * second}, sum(110*second))
	s.Delivered()
	add1(115 * second)
	require.Equal(t, point{0.03, 110 * second, 115 * second}, sum(115*second))
	s.Delivered()
	// What has ended expires by the true time, though it was seen at a later one.
	expiry := uint64(testOptions().Expiry)
	require.Len(t, points(t, s.Collect(115*second+expiry-1, noneAlive).Metrics), 1)
	s.Delivered()
	require.Empty(t, s.Collect(115*second+expiry, noneAlive).Metrics)

	// Nor do new series begin when others were let go at a time that has not come.
	s = New(testOptions())
	add1(ahead)
	sum(ahead)
	s.Delivered()
	require.Empty(t, s.Collect(ahead+expiry, noneAlive).Metrics)
	require.Empty(t, s.Collect(100*second, allAlive).Metrics)
	add1(105 * second)
	require.Equal(t, point{0.01, 100 * second, 105 * second}, sum(105*second))
}

// A batch that has waited since before the clock was set back begins a series that starts no later than its
// first point, and stays there: its start does not go along with the time of the points.
func TestSumsClockSetBackWhileABatchWaits(t *testing.T) {
	const ahead = 3600 * second
	s := New(testOptions())
	collect := func(now uint64) point {
		got := points(t, s.Collect(now, allAlive).Metrics)
		s.Delivered()
		return got["custom_labels.cpu.time map[process.executable.name:2 process.real_user.id:0] map[]"]
	}
	add(s, Batch{EndUnixNano: ahead}, &fakeProcesses{}, hits{process: 1})
	collect(ahead)
	collect(10 * second) // the clock was set back
	add(s, Batch{StartUnixNano: ahead, EndUnixNano: ahead + 5*second}, &fakeProcesses{}, hits{process: 2})
	require.Equal(t, point{0.01, 15 * second, 15 * second}, collect(15*second))
	add(s, Batch{StartUnixNano: 15 * second, EndUnixNano: 20 * second}, &fakeProcesses{}, hits{process: 2})
	require.Equal(t, point{0.02, 15 * second, 30 * second}, collect(30*second))
	require.Equal(t, point{0.02, 15 * second, 45 * second}, collect(45*second))
}

// Values of different labels that read alike one after the other are different.
func TestSumsValuesStayApart(t *testing.T) {
	s := New(testOptions())
	add(s, Batch{}, &fakeProcesses{}, hits{process: 1, set: set("tenant", "ab", "route", "c")}, hits{process: 1, set: set("tenant", "a", "route", "bc")})
	require.Len(t, points(t, s.Collect(1, allAlive).Metrics), 2)
}

// A sum that is full stays so.
func TestSumsDoNotWrap(t *testing.T) {
	se := series{ns: math.MaxUint64 - 1}
	se.add(5)
	require.Equal(t, uint64(math.MaxUint64), se.ns)
	se.add(1)
	require.Equal(t, uint64(math.MaxUint64), se.ns)
}

// A series stays for the whole of Options.Expiry, and one of a batch that begins after the
// time of collection begins at that, and ends then.
func TestSumsTimes(t *testing.T) {
	s := New(testOptions())
	add(s, Batch{StartUnixNano: 100 * second, EndUnixNano: 100 * second}, &fakeProcesses{}, hits{process: 1})
	for name, p := range points(t, s.Collect(50*second, allAlive).Metrics) {
		require.Equal(t, point{0.01, 50 * second, 50 * second}, p, name)
	}
	s.Delivered()
	require.Len(t, points(t, s.Collect(50*second+uint64(testOptions().Expiry)-1, noneAlive).Metrics), 1)
	s.Delivered()
	require.Empty(t, s.Collect(50*second+uint64(testOptions().Expiry), noneAlive).Metrics)
}

// Without label keys there is one series a process, whatever the labels are.
func TestSumsByProcess(t *testing.T) {
	o := testOptions()
	o.LabelKeys = nil
	s := New(o)
	add(s, Batch{User: 7}, &fakeProcesses{}, hits{process: 1, set: set("tenant", "a"), n: 3}, hits{process: 1, set: labels.OverflowSet(), n: 4}, hits{process: 1})
	require.Equal(t, map[string]float64{
		"custom_labels.cpu.time map[process.executable.name:1 process.real_user.id:7] map[]": 0.08,
	}, values(points(t, s.Collect(1, allAlive).Metrics)))
}

// What was cut, and what the registry had no room for, is marked, as in the profiles.
func TestSumsMarks(t *testing.T) {
	s := New(testOptions())
	cut := labels.NewSet(true, labels.Label{Key: "tenant", Value: "a"})
	add(s, Batch{User: 7}, &fakeProcesses{}, hits{process: 1, set: cut}, hits{process: 1, set: labels.OverflowSet(), n: 2})
	const one = "custom_labels.cpu.time map[process.executable.name:1 process.real_user.id:7] "
	require.Equal(t, map[string]float64{
		one + "map[custom_labels.truncated:true tenant:a]": 0.01,
		one + "map[custom_labels.overflow:true]":           0.02,
	}, values(points(t, s.Collect(1, allAlive).Metrics)))
}

// Past its budget a user's labels go, then its processes; another user has all of his, and
// no sample is lost. Series that there are go on.
func TestSumsOverflow(t *testing.T) {
	o := testOptions()
	o.MaxSeries = 3
	s := New(o)
	r := &fakeProcesses{}
	var list []hits
	for process := range uint64(4) {
		for tenant := range 4 {
			list = append(list, hits{process: process, set: set("tenant", fmt.Sprint(tenant)), n: 10})
		}
	}
	for round := range 2 {
		result := add(s, Batch{User: 7}, r, list...)
		require.Equal(t, Result{Counted: 160, LostLabels: 90, LostOwner: 40, Bytes: result.Bytes}, result, "round %d", round)
		if round > 0 {
			require.Zero(t, result.Bytes)
		}
	}
	require.Equal(t, Result{Counted: 10, Bytes: 1}, without(add(s, Batch{User: 8}, r, hits{process: 9, set: set("tenant", "x"), n: 10})))
	got := values(points(t, s.Collect(1, allAlive).Metrics))
	name := func(process int) string {
		return fmt.Sprintf("custom_labels.cpu.time map[process.executable.name:%d process.real_user.id:7] ", process)
	}
	require.Equal(t, map[string]float64{
		name(0) + "map[tenant:0]": 0.2, name(0) + "map[tenant:1]": 0.2, name(0) + "map[tenant:2]": 0.2,
		name(0) + "map[custom_labels.overflow:true]": 0.2, name(1) + "map[custom_labels.overflow:true]": 0.8,
		name(2) + "map[custom_labels.overflow:true]":                                                 0.8,
		"custom_labels.cpu.time map[process.real_user.id:7] map[custom_labels.overflow:true]":        0.8,
		"custom_labels.cpu.time map[process.executable.name:9 process.real_user.id:8] map[tenant:x]": 0.1,
	}, got)

	// Memory is short: nothing begins but what stands for all.
	result := add(s, Batch{User: 9, Tight: true}, r, hits{process: 20, set: set("tenant", "x")}, hits{process: 21})
	require.Equal(t, 2, result.LostOwner)
	require.Contains(t, points(t, s.Collect(2, allAlive).Metrics), "custom_labels.cpu.time map[process.real_user.id:9] map[custom_labels.overflow:true]")
}

// without hides how many bytes there are.
func without(r Result) Result {
	r.Bytes = min(r.Bytes, 1)
	return r
}

// Bytes bound a user, too, and users beyond their number share.
func TestSumsBytesAndUsers(t *testing.T) {
	o := testOptions()
	o.MaxBytes, o.MaxSeries = 20_000, 1_000_000
	s := New(o)
	for user := range uint32(50) {
		for i := range 100 {
			add(s, Batch{User: user}, &fakeProcesses{}, hits{process: uint64(user), set: set("tenant", strings.Repeat("x", 1000)+fmt.Sprint(i))})
		}
	}
	require.Len(t, s.accounts, o.MaxUsers)
	require.Less(t, s.bytes, (o.MaxUsers+1)*(2*o.MaxBytes+10_000))
	got := points(t, s.Collect(1, allAlive).Metrics)
	require.Contains(t, got, "custom_labels.cpu.time map[] map[custom_labels.overflow:true]")
	sum := 0.0
	for _, p := range got {
		sum += p.value
	}
	require.InDelta(t, 50, sum, 1e-6)
}

// Series of processes that have ended stay for a while, and until they were accepted; those
// that come again begin later.
func TestSumsExpiry(t *testing.T) {
	s := New(testOptions())
	r := &fakeProcesses{names: map[uint64]string{1: "a", 2: "a", 3: "b"}}
	batch := Batch{User: 7, StartUnixNano: 95 * second, EndUnixNano: 100 * second}
	add(s, batch, r, hits{process: 1}, hits{process: 3})
	only3 := func(p uint64) bool { return p == 3 }
	const a, b = "custom_labels.cpu.time map[process.executable.name:a process.real_user.id:7] map[]",
		"custom_labels.cpu.time map[process.executable.name:b process.real_user.id:7] map[]"
	collect := func(at uint64, alive func(uint64) bool) map[string]point {
		return points(t, s.Collect(at*second, alive).Metrics)
	}
	require.Contains(t, collect(110, only3), a, "not delivered yet")
	require.Contains(t, collect(200, only3), a, "neither")
	s.Delivered()
	// Another process with the same attributes goes on with the series.
	add(s, Batch{User: 7, StartUnixNano: 100 * second, EndUnixNano: 230 * second}, r, hits{process: 2})
	only23 := func(p uint64) bool { return p > 1 }
	require.Equal(t, point{0.02, 95 * second, 240 * second}, collect(240, only23)[a])
	s.Delivered()
	require.Contains(t, collect(1000, only23), a, "it lives")
	s.Delivered()
	require.Contains(t, collect(1001, only3), b)
	require.NotContains(t, collect(1002, only3), a)
	// It comes again in a batch that began before.
	add(s, Batch{User: 7, StartUnixNano: 900 * second, EndUnixNano: 1003 * second}, r, hits{process: 1})
	require.Equal(t, point{0.01, 1000 * second, 1003 * second}, collect(1003, allAlive)[a])

	s.Delivered()
	s.Collect(3000*second, noneAlive)
	require.Empty(t, collect(3001, noneAlive))
	require.Zero(t, s.bytes)
	require.Zero(t, s.Series())
	require.Empty(t, s.accounts)
	require.Empty(t, s.resources)
	require.Empty(t, s.owners)
}

// A process that changes its resource leaves the old series behind.
func TestSumsResourceChanges(t *testing.T) {
	s := New(testOptions())
	r := &fakeProcesses{names: map[uint64]string{1: "before"}}
	add(s, Batch{EndUnixNano: 1 * second}, r, hits{process: 1})
	r.names[1] = "after"
	add(s, Batch{EndUnixNano: 2 * second}, r, hits{process: 1})
	require.Len(t, points(t, s.Collect(3*second, allAlive).Metrics), 2)
	s.Delivered()
	got := points(t, s.Collect(200*second, allAlive).Metrics)
	require.Len(t, got, 1)
	require.Contains(t, got, "custom_labels.cpu.time map[process.executable.name:after process.real_user.id:0] map[]")
}

// Processes that change their resources while their user has no room leave the old series behind, too: these
// go, and make room.
func TestSumsResourceChangesWithoutRoom(t *testing.T) {
	o := testOptions()
	o.MaxSeries = 1
	s := New(o)
	r := &fakeProcesses{names: map[uint64]string{1: "before-1", 2: "before-2"}}
	now := uint64(0)
	step := func() map[string]float64 {
		now += 30 * second
		add(s, Batch{EndUnixNano: now}, r, hits{process: 1}, hits{process: 2})
		got := values(points(t, s.Collect(now, allAlive).Metrics))
		s.Delivered()
		return got
	}
	name := func(process string) string {
		return "custom_labels.cpu.time map[process.executable.name:" + process + " process.real_user.id:0] map[]"
	}
	const overflow = "custom_labels.cpu.time map[process.real_user.id:0] map[custom_labels.overflow:true]"
	before := map[string]float64{name("before-1"): 0.01, name("before-2"): 0.01}
	require.Equal(t, before, step())
	r.names[1], r.names[2] = "after-1", "after-2"
	require.Equal(t, map[string]float64{overflow: 0.02}, step(), "all samples of these were accepted")
	got := step()
	require.Len(t, got, 2)
	require.True(t, got[name("after-1")] > 0 || got[name("after-2")] > 0, "one has its series again")
	r.names[1], r.names[2] = "before-1", "before-2"
	step()

	for range 3 {
		now += 60 * second
		s.Collect(now, noneAlive)
		s.Delivered()
	}
	require.Zero(t, s.bytes)
	require.Empty(t, s.owners)
	require.Zero(t, s.Series())
	require.Empty(t, s.accounts)
}

// Batches of both kinds come while metrics are collected.
func TestSumsConcurrently(t *testing.T) {
	s := New(testOptions())
	var adding, collecting sync.WaitGroup
	const rounds = 200
	for kind := range profile.Kind(profile.NumKinds) {
		adding.Go(func() {
			for i := range rounds {
				add(s, Batch{Kind: kind, User: uint32(kind)}, &fakeProcesses{}, hits{process: uint64(i % 5), set: set("tenant", fmt.Sprint(i%7)), ns: 10_000_000})
			}
		})
	}
	stop := make(chan struct{})
	collecting.Go(func() {
		for now := second; ; now += second {
			select {
			case <-stop:
				return
			default:
				s.Collect(now, allAlive)
				s.Series()
				s.Delivered()
			}
		}
	})
	adding.Wait()
	close(stop)
	collecting.Wait()
	sum := 0.0
	for _, p := range points(t, s.Collect(1<<60, allAlive).Metrics) {
		sum += p.value
	}
	require.InDelta(t, 2*rounds*0.01, sum, 1e-9)
}

// BenchmarkAdd is the cost of an entry of a batch whose series are there.
func BenchmarkAdd(b *testing.B) {
	s := New(testOptions())
	builder := profile.NewBuilder(profile.Options{Period: time.Millisecond, ThreadID: true, ThreadName: true})
	sets := []*labels.Set{set("tenant", "a"), set("tenant", "b"), set("tenant", "c")}
	const entries = 1000
	for i := range entries {
		builder.Add(&profile.Sample{Process: uint64(i % 10), Set: sets[i%3], TID: uint32(i)})
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Add(builder, Batch{}, &fakeProcesses{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
}
