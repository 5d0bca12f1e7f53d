package cputime

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// roomShare of Options.MaxRequestBytes is left for what a last point, and what stands
// around it, takes beyond.
const roomShare = 8

// Collection is what Collect returns.
type Collection struct {
	Metrics []pmetric.Metrics // each of at most Options.MaxRequestBytes
	Points  int
	Bytes   int // by how much the Sums have grown, mostly less than 0
}

// Collect returns all sums at a time, and lets go of the series of processes that are not
// alive and have expired; where memory is short (Options.Excess), also of those that are quiet. Times do not go back: one that is little earlier than the last is moved
// behind that. Where it is earlier by more than maxClockBack, the clock was wrong before, and all
// series begin anew.
func (s *Sums) Collect(unixNano uint64, alive func(process uint64) bool) Collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.bytes
	s.accept()
	if unixNano+maxClockBack < s.last {
		s.begin(unixNano)
	}
	unixNano = max(unixNano, s.last+1)
	if s.opts.Excess != nil {
		s.makeRoom(unixNano, s.opts.Excess())
	}
	if s.expire(unixNano, alive) {
		s.floor = s.last
	}
	s.last = unixNano
	s.collections++
	w := writer{sums: s, time: pcommon.Timestamp(unixNano)}
	// Where a backend takes two for one, the first has the last word of what went on before.
	for _, of := range slices.SortedFunc(maps.Values(s.resources), func(a, b *resource) int { return cmp.Compare(a.number, b.number) }) {
		w.write(of)
	}
	return Collection{w.all, w.points, s.bytes - before}
}

// maxClockBack is by how much the clock may go back before sums begin anew: until it has caught up
// all points have nearly the same time.
const maxClockBack = uint64(time.Second)

// begin has all series begin at a time, with what has not been accepted of them.
func (s *Sums) begin(unixNano uint64) {
	for _, of := range s.resources {
		for _, se := range of.series {
			se.ns -= se.accepted
			se.accepted, se.start = 0, unixNano
		}
	}
	s.floor, s.last = 0, 0
}

// accept notes what was accepted of what was told in the last collection: all of it, or parts.
func (s *Sums) accept() {
	for _, of := range s.resources {
		for _, se := range of.series {
			se.accepted = s.acceptedOf(se)
		}
	}
	clear(s.parts)
}

// acceptedOf returns how much of a series was accepted by now.
func (s *Sums) acceptedOf(se *series) uint64 {
	if s.delivered == s.collections || s.parts[se.request] {
		return se.told
	}
	return se.accepted
}

// Unaccepted returns how much time, of each kind, was added and not accepted yet.
func (s *Sums) Unaccepted() (left [profile.NumKinds]time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.resources {
		for _, se := range of.series {
			left[se.kind] += time.Duration(se.ns - s.acceptedOf(se))
		}
	}
	return left
}

// writer writes points, resource by resource.
type writer struct {
	sums   *Sums
	time   pcommon.Timestamp
	all    []pmetric.Metrics
	points int // in all
	left   int // bytes, in the last
	sizes  pmetric.ProtoMarshaler
}

func (w *writer) write(of *resource) {
	var lists [profile.NumKinds]pmetric.NumberDataPointSlice
	var known [profile.NumKinds]bool
	var scope pmetric.ScopeMetrics
	begun := false
	for k, se := range of.series {
		if !begun || w.left <= 0 {
			scope, known, begun = w.scope(of), [profile.NumKinds]bool{}, true
		}
		if !known[k.kind] {
			lists[k.kind], known[k.kind] = newMetric(scope.Metrics().AppendEmpty(), k.kind), true
			w.left -= metricBytes
		}
		p := lists[k.kind].AppendEmpty()
		w.point(p, se)
		w.left -= w.sizes.NumberDataPointSize(p) + headerBytes
		w.points++
	}
}

// What a metric takes beside its points, roughly, and the length of a point or resource
// before it.
const metricBytes, headerBytes = 128, 8

// scope begins what is about a resource, in new Metrics if it has no room in the last.
func (w *writer) scope(of *resource) pmetric.ScopeMetrics {
	rm := pmetric.NewResourceMetrics()
	of.attrs.CopyTo(rm.Resource().Attributes())
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(w.sums.opts.ScopeName)
	sm.Scope().SetVersion(w.sums.opts.ScopeVersion)
	bytes := w.sizes.ResourceMetricsSize(rm) + headerBytes
	if w.left < bytes {
		w.all = append(w.all, pmetric.NewMetrics())
		w.left = w.sums.opts.MaxRequestBytes - w.sums.opts.MaxRequestBytes/roomShare
	}
	w.left -= bytes
	last := w.all[len(w.all)-1].ResourceMetrics().AppendEmpty()
	rm.MoveTo(last)
	return last.ScopeMetrics().At(0)
}

func newMetric(m pmetric.Metric, kind profile.Kind) pmetric.NumberDataPointSlice {
	m.SetUnit("s")
	if kind == profile.KindCPU {
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
	// The clock may have been ahead; the start stays where its first point has it.
	se.start = min(se.start, uint64(w.time))
	p.SetStartTimestamp(pcommon.Timestamp(se.start))
	se.told, se.request = se.ns, len(w.all)-1
	p.SetDoubleValue(float64(se.ns) / nanosecondsPerSecond)
	attrs := p.Attributes()
	for i, v := range se.values {
		if v != "" {
			attrs.PutStr(w.sums.opts.LabelKeys[i], v)
		}
	}
	if se.state != record.ThreadRunning {
		attrs.PutStr(AttrThreadState, se.state.String())
	}
	if se.marks&truncated != 0 {
		attrs.PutBool(AttrTruncated, true)
	}
	if se.marks&overflow != 0 {
		attrs.PutBool(AttrOverflow, true)
	}
}
