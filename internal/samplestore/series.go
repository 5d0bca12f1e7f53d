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

func series(scans []*scan, q *Query, status Status) Series {
	n := min(max(q.Buckets, 1), MaxBuckets)
	from, to := status.FromMs, status.ToMs
	out := Series{StepMs: stepOf(to-from+1, n)}
	out.FromMs = from - from%out.StepMs
	if status.ToMs == 0 && status.FromMs == 0 {
		return out
	}
	out.Buckets = int((to-out.FromMs)/out.StepMs) + 1
	classes := topValues(scans, q.By)
	for _, v := range classes {
		out.Values = append(out.Values, SeriesValue{Value: v, Ns: make([]int64, out.Buckets)})
	}
	others := SeriesValue{Others: true, Ns: make([]int64, out.Buckets)}
	var otherNs int64
	for _, s := range scans {
		classOf := s.classes(q.By, classes)
		s.visit(func(r *row, v verdict, _ bool) {
			if v.failed != noFilter {
				return
			}
			at := (r.timeMs - out.FromMs) / out.StepMs
			if at < 0 || at >= int64(out.Buckets) {
				return
			}
			if class := classOf[r.set]; class >= 0 {
				out.Values[class].Ns[at] += r.ns
			} else {
				others.Ns[at] += r.ns
				otherNs += r.ns
			}
		})
	}
	if otherNs > 0 {
		out.Values = append(out.Values, others)
	}
	return out
}

// topValues returns the values of a label with the most time.
func topValues(scans []*scan, key string) []Value {
	sums := map[Value]int64{}
	for _, s := range scans {
		c := compile(s.part, []Filter{{Key: key}})[0]
		local := map[compiledValue]int64{}
		for i, ns := range s.allNs {
			if ns > 0 {
				local[c.of(&s.part.sets[i])] += ns
			}
		}
		for v, ns := range local {
			sums[s.value(v)] += ns
		}
	}
	values := make([]Value, 0, len(sums))
	for v := range sums {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b Value) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a.Text, b.Text))
	})
	return values[:min(len(values), maxClasses)]
}

func (s *scan) value(v compiledValue) Value {
	if !v.present {
		return Value{}
	}
	return Value{Text: s.part.strings[v.value], Present: true}
}

// classes returns for each set the index of its value, -1 for others.
func (s *scan) classes(key string, values []Value) []int {
	c := compile(s.part, []Filter{{Key: key, Values: values}})[0]
	known := ids(s.part.strings, texts(values))
	index := map[compiledValue]int{}
	for i, v := range values {
		if id, ok := known[v.Text]; v.Present && ok {
			index[compiledValue{value: id, present: true}] = i
		} else if !v.Present {
			index[compiledValue{}] = i
		}
	}
	out := make([]int, len(s.part.sets))
	for i := range s.part.sets {
		class, ok := index[c.of(&s.part.sets[i])]
		if !ok {
			class = -1
		}
		out[i] = class
	}
	return out
}

func texts(values []Value) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = v.Text
	}
	return all
}
