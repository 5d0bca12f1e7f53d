package cputime

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
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
