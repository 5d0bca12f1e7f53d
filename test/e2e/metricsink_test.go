//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// A series is one of the metrics that the receiver makes.
type series struct {
	metric   string
	resource map[string]string
	attrs    map[string]string
	start    uint64 // Unix ns
	time     uint64 // of the last point
	ns       int64  // of the last point
	// before is what the series had when it began anew.
	before int64
	seen   int // in the last collection with that number
}

func (s *series) total() int64 { return s.before + s.ns }

// A metricSink is the next consumer of metrics. It keeps each series, and checks that it
// is there once at a time, and that its sum never goes back under one start.
type metricSink struct {
	t testing.TB

	mu          sync.Mutex
	series      map[string]*series
	collections int
	time        uint64 // of the last
}

func newMetricSink(t testing.TB) *metricSink { return &metricSink{t: t, series: map[string]*series{}} }

func (s *metricSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *metricSink) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range metrics.ResourceMetrics().All() {
		resource := map[string]string{}
		for k, v := range rm.Resource().Attributes().All() {
			resource[k] = text(v)
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				assert.Equal(s.t, "s", m.Unit())
				assert.True(s.t, m.Sum().IsMonotonic())
				assert.Equal(s.t, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality())
				for _, p := range m.Sum().DataPoints().All() {
					s.point(m.Name(), resource, p)
				}
			}
		}
	}
	return nil
}

func (s *metricSink) point(metric string, resource map[string]string, p pmetric.NumberDataPoint) {
	attrs := map[string]string{}
	for k, v := range p.Attributes().All() {
		attrs[k] = text(v)
	}
	if uint64(p.Timestamp()) != s.time {
		s.collections++
		assert.Greater(s.t, uint64(p.Timestamp()), s.time)
		s.time = uint64(p.Timestamp())
	}
	name := fmt.Sprint(metric, resource, attrs)
	known := s.series[name]
	if known == nil {
		known = &series{metric: metric, resource: resource, attrs: attrs}
		s.series[name] = known
	}
	assert.NotEqual(s.t, s.collections, known.seen, "twice in one collection: %s", name)
	ns := int64(math.Round(p.DoubleValue() * 1e9))
	assert.LessOrEqual(s.t, p.StartTimestamp(), p.Timestamp())
	if start := uint64(p.StartTimestamp()); start != known.start {
		assert.GreaterOrEqual(s.t, start, known.time, "a new start before what was said last: %s", name)
		known.before += known.ns
		known.start, known.ns = start, 0
	}
	assert.GreaterOrEqual(s.t, ns, known.ns, "a sum that goes back: %s", name)
	known.ns, known.time, known.seen = ns, uint64(p.Timestamp()), s.collections
}

// sum adds up the nanoseconds of series.
func (s *metricSink) sum(metric string, of func(*series) bool) (ns int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.series {
		if one.metric == metric && of(one) {
			ns += one.total()
		}
	}
	return ns
}

// count tells how many series there are, and how many of them in the last collection.
func (s *metricSink) count(of func(*series) bool) (all, last int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.series {
		if of(one) {
			all++
			if one.seen == s.collections {
				last++
			}
		}
	}
	return all, last
}

func everySeries(*series) bool { return true }

// metricsEndpoint receives OTLP metrics for a metricSink.
type metricsEndpoint struct {
	pmetricotlp.UnimplementedGRPCServer
	sink *metricSink
}

// Export implements the server.
func (e *metricsEndpoint) Export(ctx context.Context, r pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	return pmetricotlp.NewExportResponse(), e.sink.ConsumeMetrics(ctx, r.Metrics())
}
