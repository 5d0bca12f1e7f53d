package samplestore

import (
	"cmp"
	"slices"
)

// Series is time over time: sums in buckets of equal width, for each of some values of a
// label. It covers all times, whatever range the query has.
type Series struct {
	FromMs, StepMs int64
	Buckets        int
	Values         []SeriesValue // the most time first
}

// SeriesValue is the time in each bucket with one value, or with all others.
type SeriesValue struct {
	Value  Value
	Others bool
	Ns     []int64
}

// widths of buckets in ms, so that ticks fall on round times.
func steps() []int64 {
	return []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000}
}

// stepOf returns the least round width with which at most n buckets cover a time.
func stepOf(spanMs int64, n int) int64 {
	all := steps()
	for _, step := range all {
		if spanMs/step < int64(n) {
			return step
		}
	}
	last := all[len(all)-1]
	return last * (spanMs/(last*int64(n)) + 1)
}

func series(scans []*scan, q *Query, status Status, m *scratch) Series {
	n := min(max(q.Buckets, 1), MaxBuckets)
	from, to := status.FromMs, status.ToMs
	out := Series{StepMs: stepOf(to-from+1, n)}
	out.FromMs = from - from%out.StepMs
	if status.ToMs == 0 && status.FromMs == 0 {
		return out
	}
	out.Buckets = int((to-out.FromMs)/out.StepMs) + 1
	classes := topValues(scans, q.By, maxClasses, func(s *scan) pairSums { return s.all })
	for _, v := range classes {
		out.Values = append(out.Values, SeriesValue{Value: v, Ns: make([]int64, out.Buckets)})
	}
	others := SeriesValue{Others: true, Ns: make([]int64, out.Buckets)}
	var otherNs int64
	for _, s := range scans {
		classOf := s.classes(q.By, classes, m)
		s.visit(s.pass, func(r *row, failed, _ int8, _ bool) {
			if failed != noFilter {
				return
			}
			at := (r.timeMs - out.FromMs) / out.StepMs
			if at < 0 || at >= int64(out.Buckets) {
				return
			}
			if class := classOf[r.set]; class >= 0 {
				out.Values[class].Ns[at] = AddNs(out.Values[class].Ns[at], r.ns)
			} else {
				others.Ns[at] = AddNs(others.Ns[at], r.ns)
				otherNs = AddNs(otherNs, r.ns)
			}
		})
	}
	if otherNs > 0 {
		out.Values = append(out.Values, others)
	}
	return out
}

// topValues returns the values of a label with the most time, its absence among them.
func topValues(scans []*scan, key string, count int, times func(*scan) pairSums) []Value {
	sums := map[Value]int64{}
	for _, s := range scans {
		pairs := times(s)
		all := pairs.all
		id, known := ids(s.part.strings, []string{key})[key]
		var there []valueNs
		for i, ns := range pairs.ns {
			if p := &s.part.pairs[i]; ns > 0 && known && p.key == id {
				there = append(there, valueNs{p.value, ns})
				all -= ns
			}
		}
		for _, v := range most(there, mergedValues) {
			value := Value{Text: s.part.strings[v.value], Present: true}
			sums[value] = AddNs(sums[value], v.ns)
		}
		if all > 0 {
			sums[Value{}] = AddNs(sums[Value{}], all)
		}
	}
	values := make([]Value, 0, len(sums))
	for v := range sums {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b Value) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a.Text, b.Text))
	})
	return values[:min(len(values), count)]
}
