package samplestore

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// load fills a store as test/e2e's webLoad does: with stacks that share their outer frames, a
// quarter of them new, and ten thousand label keys.
func load(s *Store, samples int) {
	const (
		stacks, functions, keys, traces = 20_000, 20_000, 10_000, 50_000
		batches, batchMs                = 120, 5000
		fresh                           = 0.25
	)
	r := rand.New(rand.NewPCG(1, 2))
	known := [][]int{{0}}
	branch := func() {
		below := known[int(float64(len(known))*r.Float64()*r.Float64())]
		if len(below) > 60 {
			below = below[20:]
		}
		stack := make([]int, 1+r.IntN(6), 7+len(below))
		for i := range stack {
			stack[i] = int(functions * r.Float64() * r.Float64())
		}
		known = append(known, append(stack, below...))
	}
	for len(known) < stacks {
		branch()
	}
	locations := map[int]*Location{}
	location := func(number int) *Location {
		l := locations[number]
		if l == nil {
			l = &Location{Type: "native", Mapping: Mapping{File: fmt.Sprintf("/usr/lib/libpart%d.so", number%11)}}
			l.Lines = []Line{{Function: Function{Name: fmt.Sprintf("package%d::function_%d", number%40, number)}}}
			locations[number] = l
		}
		return l
	}
	for batch := range batches {
		s.Batch(func(add func(*Sample)) {
			for range samples / batches {
				if r.Float64() < fresh {
					branch()
				}
				tenant := int(10 * r.Float64() * r.Float64())
				one := &Sample{Labels: []Label{
					{Key: "service.name", Value: fmt.Sprintf("service-%d", int(6*r.Float64()*r.Float64()))},
					{Key: "tenant", Value: fmt.Sprintf("tenant-%d", tenant)},
					{Key: "route", Value: fmt.Sprintf("/route/%d", tenant*3+r.IntN(3))},
					{Key: fmt.Sprintf("flag_%d", r.IntN(keys)), Value: "on"},
					{Key: "thread.name", Value: fmt.Sprintf("worker-%d", r.IntN(16))},
					{Key: "trace_id", Value: fmt.Sprintf("%032x", r.IntN(traces)+1)},
				}}
				for _, number := range known[r.IntN(len(known))] {
					one.Stack = append(one.Stack, location(number))
				}
				ms := int64(1_000_000 + batch*batchMs + r.IntN(batchMs))
				one.Points = []Point{{TimeNs: ms * 1e6, Hits: 1, Ns: 1e6}}
				add(one)
			}
		})
	}
}

// BenchmarkQuery asks what a page asks for first, of a million samples.
func BenchmarkQuery(b *testing.B) {
	s := New(1 << 30)
	load(s, 1_000_000)
	for name, q := range map[string]Query{
		"all": {}, "grouped": {Group: "tenant"}, "filtered": {Filters: []Filter{{Key: "tenant", Values: []Value{{Text: "tenant-1", Present: true}}}}},
		"compared": {Compare: &Compare{Key: "tenant", A: Value{Text: "tenant-0", Present: true}, B: Value{Text: "tenant-1", Present: true}}},
	} {
		q.By, q.Buckets = "tenant", 160
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.kept.forget()
				s.Query(&q)
			}
		})
	}
	b.ReportMetric(float64(s.Status().Bytes)/1e6, "bytes/sample")
}
