//go:build linux && (amd64 || arm64)

package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
)

// A side is one of two collectors that are measured at once.
type side struct {
	subject  string
	c        *collector
	programs *programSet
	out      *emission
}

// startSides starts the collectors, in the order that is given.
func startSides(t *testing.T, order []string, hz int, types ...ebpf.ProgramType) []*side {
	t.Helper()
	var sides []*side
	for _, subject := range order {
		p := profilers()[subject]
		c := startCommand(t, p.command, p.config(hz))
		sides = append(sides, &side{subject: subject, c: c, programs: openPrograms(t, c.pid(), types...), out: &emission{c: c}})
	}
	return sides
}

// stop ends a collector and returns what became of every hit, as [collector.stop] does.
func (s *side) stop() map[string]int64 {
	s.programs.close()
	return s.c.stop()
}

// A spent is what a collector has taken since it started.
type spent struct {
	bpf programTime
	cpu time.Duration
}

func (s *side) spent() spent {
	return spent{bpf: s.programs.time(), cpu: cpuTime(s.c.t, s.c.pid())}
}

func (a spent) minus(b spent) spent { return spent{bpf: a.bpf.minus(b.bpf), cpu: a.cpu - b.cpu} }

// A holding is memory in MiB.
type holding struct {
	resident float64 // of the process
	maps     float64 // of its BPF maps
	all      float64 // both, ring buffers once
}

func (s *side) holds() holding {
	r, maps := readResidence(s.c.t, s.c.pid()), mapBytes(s.c.t, s.c.pid(), profilers()[s.subject].innerMaps)
	return holding{float64(r.total) / mib, float64(maps) / mib, float64(r.total-r.maps+maps) / mib}
}

// awaitGap waits for the middle of the longest time in which neither of two sides emits:
// what is then measured for some report intervals has as many reports of each.
func awaitGap(t *testing.T, sides []*side) {
	t.Helper()
	now := time.Now()
	var next []time.Duration
	for _, s := range sides {
		next = append(next, reportInterval-now.Sub(s.out.last)%reportInterval)
	}
	slices.Sort(next)
	require.Len(t, next, 2)
	time.Sleep(gap(next[0], next[1]))
}

// gap is how long it is until the middle of the longest time in which nothing is emitted,
// from when both emit for the next time.
func gap(first, second time.Duration) time.Duration {
	wait := (first + second) / 2
	if second-first < reportInterval/2 {
		wait -= reportInterval / 2
	}
	if wait < 0 {
		wait += reportInterval
	}
	return wait
}

func TestGap(t *testing.T) {
	r := reportInterval
	for first := time.Duration(0); first < r; first += r / 20 {
		for second := first; second < r; second += r / 20 {
			wait := gap(first, second)
			require.GreaterOrEqual(t, wait, time.Duration(0))
			for _, emits := range []time.Duration{first - r, second - r, first, second, first + r, second + r} {
				require.GreaterOrEqual(t, (wait - emits).Abs(), r/4, "%v, %v: %v", first, second, wait)
			}
		}
	}
}
