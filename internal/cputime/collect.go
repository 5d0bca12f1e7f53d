package cputime

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// maxPoints of one pmetric.Metrics: receivers refuse requests of some megabytes.
const maxPoints = 4096

// Collection is what Collect returns.
type Collection struct {
	Metrics []pmetric.Metrics // of at most some thousand points each
	Points  int
	Bytes   int // by how much the Sums have grown, mostly less than 0
}

// Collect returns all sums at a time, and lets go of the series of processes that are not
// alive and have expired. Times do not go back: an earlier one than the last is moved
// behind that.
func (s *Sums) Collect(unixNano uint64, alive func(process uint64) bool) Collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.bytes
	unixNano = max(unixNano, s.last+1)
	if s.expire(unixNano, alive) {
		s.floor = s.last
	}
	s.last = unixNano
	s.collections++
	w := writer{sums: s, time: pcommon.Timestamp(unixNano)}
	for _, of := range s.resources {
		w.write(of)
	}
	return Collection{w.all, w.points, s.bytes - before}
}

// writer writes points, resource by resource.
type writer struct {
	sums   *Sums
	time   pcommon.Timestamp
	all    []pmetric.Metrics
	points int // in all
	left   int // in the last
}

func (w *writer) write(of *resource) {
	var lists [numKinds]pmetric.NumberDataPointSlice
	var known [numKinds]bool
	scope := w.scope(of)
	for k, se := range of.series {
		if w.left == 0 {
			scope, known = w.scope(of), [numKinds]bool{}
		}
		if !known[k.kind] {
			lists[k.kind], known[k.kind] = newMetric(scope.Metrics().AppendEmpty(), k.kind), true
		}
		w.point(lists[k.kind].AppendEmpty(), se)
		w.left--
		w.points++
	}
}

// scope begins what is about a resource, in new Metrics if the last are full.
func (w *writer) scope(of *resource) pmetric.ScopeMetrics {
	if w.left == 0 {
		w.all = append(w.all, pmetric.NewMetrics())
		w.left = maxPoints
	}
	rm := w.all[len(w.all)-1].ResourceMetrics().AppendEmpty()
	of.attrs.CopyTo(rm.Resource().Attributes())
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(w.sums.opts.ScopeName)
	sm.Scope().SetVersion(w.sums.opts.ScopeVersion)
	return sm
}

func newMetric(m pmetric.Metric, kind Kind) pmetric.NumberDataPointSlice {
	m.SetUnit("s")
	if kind == OnCPU {
		m.SetName(MetricCPUTime)
		m.SetDescription("Time that threads were on the CPU, by sampling.")
	} else {
		m.SetName(MetricOffCPUTime)
		m.SetDescription("Time that threads were off the CPU, for all reasons.")
	}
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	return sum.DataPoints()
}

const nanosecondsPerSecond = 1e9

func (w *writer) point(p pmetric.NumberDataPoint, se *series) {
	p.SetTimestamp(w.time)
	p.SetStartTimestamp(min(pcommon.Timestamp(se.start), w.time))
	p.SetDoubleValue(float64(se.ns) / nanosecondsPerSecond)
	attrs := p.Attributes()
	for i, v := range se.values {
		if v != "" {
			attrs.PutStr(w.sums.opts.LabelKeys[i], v)
		}
	}
	if se.state != profile.ThreadRunning {
		attrs.PutStr(AttrThreadState, se.state.String())
	}
	if se.marks&truncated != 0 {
		attrs.PutBool(AttrTruncated, true)
	}
	if se.marks&overflow != 0 {
		attrs.PutBool(AttrOverflow, true)
	}
}
