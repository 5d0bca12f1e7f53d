package cputime

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// contexts are processes whose resource has an attribute that backends do not keep.
type contexts map[uint64]int

func (contexts) Wanted(uint64, int) bool { return true }

func (c contexts) Resource(process uint64, attrs pcommon.Map) {
	attrs.PutInt("process.pid", int64(process))
	attrs.PutInt("telemetry.version", int64(c[process]))
}

// counter is a series of a backend that keeps a resource's PID only, as Prometheus does with what is promoted.
type counter struct {
	value, increase float64
	time            uint64
}

// kept is such a backend: of points of one series and time it takes the first.
type kept map[string]*counter

// take takes what was collected, and returns how many points it could not.
func (k kept) take(c Collection) (ambiguous int) {
	for _, m := range c.Metrics {
		for _, rm := range m.ResourceMetrics().All() {
			pid, _ := rm.Resource().Attributes().Get("process.pid")
			for _, p := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
				name := fmt.Sprint(pid.Int(), p.Attributes().AsRaw())
				s, value := k[name], p.DoubleValue()
				switch {
				case s == nil:
					k[name] = &counter{value, value, uint64(p.Timestamp())}
					continue
				case s.time == uint64(p.Timestamp()):
					ambiguous++
					continue
				case value < s.value: // a reset
					s.increase += value
				default:
					s.increase += value - s.value
				}
				s.value, s.time = value, uint64(p.Timestamp())
			}
		}
	}
	return ambiguous
}

// TestSumsResourceChangesInPart: where a backend has one series for a process before and after a change of its resource,
// it has what the process has used: of the two sums, which one collection at most has both of, the one before goes first.
func TestSumsResourceChangesInPart(t *testing.T) {
	for name, delivered := range map[string]func(collection int) bool{
		"each accepted": func(int) bool { return true },
		"some refused":  func(collection int) bool { return collection%3 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			const processes, collections = 20, 60
			s, of, backend := New(testOptions()), contexts{}, kept{}
			used := 0
			step := func(i int) {
				var list []hits
				for process := range uint64(processes) {
					list = append(list, hits{process: process, n: 1 + i%3})
				}
				now := uint64(i) * 5 * second
				add(s, Batch{StartUnixNano: now - 5*second, EndUnixNano: now}, of, list...)
				used += 1 + i%3
			}
			ambiguous := 0
			for i := 1; i <= collections; i++ {
				step(2 * i)
				if i == 30 { // between two batches of one collection
					for process := range uint64(processes) {
						of[process]++
					}
				}
				step(2*i + 1)
				c := s.Collect(uint64(2*i+1)*5*second, allAlive)
				if !delivered(i) {
					continue // as if it had not arrived
				}
				ambiguous += backend.take(c)
				s.Delivered()
			}
			require.LessOrEqual(t, ambiguous, processes)
			require.Len(t, backend, processes)
			for name, of := range backend {
				require.InDelta(t, float64(used)*0.01, of.increase, 1e-9, name)
			}
			require.Equal(t, processes, s.Series())
		})
	}
}

// TestSumsResourceOfTwo: a resource that one process has left, and another one has had until it ended, stays as long as
// that of any process that has ended.
func TestSumsResourceOfTwo(t *testing.T) {
	s := New(testOptions())
	r := &fakeProcesses{names: map[uint64]string{1: "a", 2: "a"}}
	const a = "custom_labels.cpu.time map[process.executable.name:a process.real_user.id:0] map[]"
	add(s, Batch{EndUnixNano: 100 * second}, r, hits{process: 1}, hits{process: 2})
	r.names[1] = "b"
	add(s, Batch{EndUnixNano: 105 * second}, r, hits{process: 1})
	s.Collect(105*second, allAlive)
	s.Delivered()
	require.Contains(t, points(t, s.Collect(110*second, noneAlive).Metrics), a)
	s.Delivered()
	// One that comes back to it, and ends, as well.
	r.names[1] = "a"
	add(s, Batch{EndUnixNano: 115 * second}, r, hits{process: 1})
	r.names[1] = "c"
	add(s, Batch{EndUnixNano: 116 * second}, r, hits{process: 1})
	r.names[1] = "a"
	add(s, Batch{EndUnixNano: 117 * second}, r, hits{process: 1})
	s.Collect(120*second, noneAlive)
	s.Delivered()
	require.Contains(t, points(t, s.Collect(125*second, noneAlive).Metrics), a)
}
