package cputime

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// Many points, and large resources, come in several pieces.
func TestCollectPieces(t *testing.T) {
	t.Run("of many processes", func(t *testing.T) { testCollectPieces(t, 40, 20_000) }) // more than the room that is left
	t.Run("of one process", func(t *testing.T) { testCollectPieces(t, 1, 20) })
}

func testCollectPieces(t *testing.T, processes uint64, nameBytes int) {
	const series = 4000
	o := testOptions()
	o.MaxSeries, o.MaxBytes = 1<<20, 1<<30
	s := New(o)
	large := &fakeProcesses{names: map[uint64]string{}}
	for i := range processes {
		large.names[i] = fmt.Sprint(i, strings.Repeat("x", nameBytes))
	}
	var list []hits
	for i := range series {
		list = append(list, hits{process: uint64(i) % processes, set: set("tenant", fmt.Sprint(i))})
	}
	add(s, Batch{}, large, list...)
	c := s.Collect(1, allAlive)
	require.Len(t, points(t, c.Metrics), series)
	bytes := 0
	for _, m := range c.Metrics {
		bytes += new(pmetric.ProtoMarshaler).MetricsSize(m)
		for _, rm := range m.ResourceMetrics().All() {
			require.NotZero(t, rm.ScopeMetrics().At(0).Metrics().Len(), "a resource without points")
		}
	}
	require.LessOrEqual(t, len(c.Metrics), 2*bytes/testRequestBytes, "they are filled")
	require.Empty(t, New(o).Collect(1, allAlive).Metrics)
}

// Where one request of a collection was accepted and another refused, and the clock is set back, sums begin anew with
// what was not accepted of each.
func TestAcceptedInParts(t *testing.T) {
	const ahead = 3600 * second
	o := testOptions()
	o.MaxRequestBytes = 1 // each series comes alone
	s := New(o)
	add2 := func() {
		add(s, Batch{}, &fakeProcesses{}, hits{process: 1, set: set("tenant", "a")}, hits{process: 1, set: set("tenant", "b")})
	}
	add2()
	c := s.Collect(ahead, allAlive)
	require.Len(t, c.Metrics, 2)
	accepted := slices.Sorted(maps.Keys(points(t, c.Metrics[1:])))
	s.DeliveredPart(1)
	add2()
	c = s.Collect(ahead+second, allAlive)
	for name, p := range points(t, c.Metrics) {
		require.InDelta(t, 0.02, p.value, 1e-9, name)
	}
	c = s.Collect(second, allAlive) // of the last collection, nothing was accepted
	for name, p := range points(t, c.Metrics) {
		want := 0.02
		if slices.Contains(accepted, name) {
			want = 0.01
		}
		require.InDelta(t, want, p.value, 1e-9, name)
	}
}

// A request that is always refused keeps its series, and no others, when their processes have ended.
func TestRefusedKeepsItsOwn(t *testing.T) {
	o := testOptions()
	o.MaxRequestBytes = 1 // each series comes alone
	s := New(o)
	add(s, Batch{}, &fakeProcesses{}, hits{process: 1}, hits{process: 2})
	c := s.Collect(second, noneAlive)
	require.Len(t, c.Metrics, 2)
	s.DeliveredPart(0)
	later := second + 2*uint64(o.Expiry)
	require.Equal(t, 1, len(s.Collect(later, noneAlive).Metrics))
	require.Equal(t, 1, len(s.Collect(2*later, noneAlive).Metrics))
	s.Delivered()
	require.Empty(t, s.Collect(3*later, noneAlive).Metrics)
}

// BenchmarkCollect is the cost of a series each interval.
func BenchmarkCollect(b *testing.B) {
	o := testOptions()
	const count = 10_000
	o.MaxSeries, o.MaxBytes = count, 1<<30
	s := New(o)
	list := make([]hits, count)
	for i := range list {
		list[i] = hits{process: uint64(i % 100), set: set("tenant", fmt.Sprint(i))}
	}
	add(s, Batch{}, &fakeProcesses{}, list...)
	b.ReportAllocs()
	for b.Loop() {
		s.Collect(1, allAlive)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/count, "ns/series")
}

// What was not accepted is told by kind, without what was accepted since the last collection.
func TestUnaccepted(t *testing.T) {
	o := testOptions()
	o.MaxRequestBytes = 1 // each series comes alone
	s := New(o)
	add(s, Batch{}, &fakeProcesses{}, hits{process: 1}, hits{process: 2})
	add(s, Batch{Kind: profile.KindOffCPU}, &fakeProcesses{}, hits{process: 3, ns: 5})
	left := func(cpu, off time.Duration) {
		t.Helper()
		require.Equal(t, [profile.NumKinds]time.Duration{profile.KindCPU: cpu, profile.KindOffCPU: off}, s.Unaccepted())
	}
	left(2*o.Period, 5)
	s.Collect(second, allAlive)
	left(2*o.Period, 5)
	s.DeliveredPart(0)
	left(o.Period, 5)
	s.Delivered()
	add(s, Batch{}, &fakeProcesses{}, hits{process: 1})
	left(o.Period, 0)
	s.Collect(2*second, allAlive)
	s.Delivered()
	left(0, 0)
}
