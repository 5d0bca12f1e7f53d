//go:build linux && (amd64 || arm64)

package bpf

import (
	"maps"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// Of ticks, those are missed that were due and are no hits when the event has been seen to count afterwards.
func TestTicks(t *testing.T) {
	type look struct {
		after   time.Duration // since the clock was enabled
		hits    uint64        // since then
		eventNs uint64
		missed  uint64 // what is certain then
		dead    bool
	}
	const ms, s = time.Millisecond, time.Second
	for _, c := range []struct {
		name  string
		looks []look
		ended uint64 // the event's count when it has been disabled
		total uint64
	}{
		{"all delivered", []look{{s, 100, 1, 0, false}, {2 * s, 200, 2, 0, false}}, 3, 0},
		{"before the first", []look{{9 * ms, 0, 1, 0, false}}, 2, 0},
		{"one under way", []look{{s, 99, 1, 0, false}, {2 * s, 199, 2, 0, false}}, 3, 0},
		{"two missing", []look{{s, 98, 1, 0, false}}, 2, 1},
		{"known with the next look", []look{{s, 50, 1, 0, false}, {2 * s, 150, 2, 49, false}}, 3, 49},
		{"they add up", []look{{s, 50, 1, 0, false}, {2 * s, 100, 2, 49, false}}, 3, 99},
		{"hits of after the look", []look{{s, 50, 1, 0, false}, {2 * s, 170, 2, 49, false}, {3 * s, 250, 3, 49, false}}, 4, 49},
		{"more hits than are due", []look{{s, 200, 1, 0, false}}, 2, 0},
		{"before it was enabled", []look{{-s, 0, 1, 0, false}}, 2, 0},
		// The CPU went after the first look: what the second and third lack was never due.
		{"offline", []look{{s, 90, 1, 0, false}, {2 * s, 100, 2, 9, false}, {3 * s, 100, 2, 9, true}}, 2, 9},
		{"offline, and closed at once", []look{{s, 90, 1, 0, false}, {2 * s, 100, 2, 9, false}}, 2, 9},
		{"not even one count", []look{{s, 0, 0, 0, true}}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			const before = 1000
			enabled := time.Now()
			of := ticks{period: 10 * ms, enabled: enabled, before: before}
			for i, l := range c.looks {
				require.Equal(t, !l.dead, of.look(enabled.Add(l.after), before+l.hits, l.eventNs), "look %d", i)
				require.Equal(t, l.missed, of.missed, "look %d", i)
			}
			of.confirm(c.ended)
			require.Equal(t, c.total, of.missed)
		})
	}
}

// Ticks that the kernel does not deliver are counted: those of a thread that does nothing but look
// up a large map.
func TestMissedTicks(t *testing.T) {
	testutil.RequireBPF(t)
	const (
		long    = 2 * time.Second // of the thread's CPU time
		entries = 1 << 17
	)
	large := newLargeMap(t, entries)
	keys, values := make([]uint64, entries), make([]uint64, entries)
	config := Config{SamplesPerSecond: 997, RingBufferBytes: 8 << 20}
	testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
		onOneCPU(t)
		for _, busy := range []bool{false, true} {
			s := newSampler(t, config)
			require.NoError(t, s.Start())
			sampled, began, start := uint64(0), threadTime(t), time.Now()
			for next := time.Duration(0); threadTime(t)-began < long; {
				if busy {
					_, err := large.BatchLookup(new(ebpf.MapBatchCursor), keys, values, nil)
					require.ErrorIs(t, err, ebpf.ErrKeyNotExist, "that was all")
				}
				if used := threadTime(t) - began; used > next {
					next = used + long/2
					_, err := s.UpdateCPUs()
					require.NoError(t, err)
				}
			}
			used, whole := threadTime(t)-began, time.Since(start)
			drain(t, s, func(r *Record) {
				if r.TID == uint32(unix.Gettid()) {
					sampled++
				}
			})
			c, err := s.Counters()
			require.NoError(t, err)
			require.Zero(t, c.DroppedRingFull+c.DroppedUserShare)
			due := uint64(used / config.Period())
			t.Logf("busy with a map: %v; %d samples of %d; %d ticks were missed, and %d made hits", busy, sampled, due, c.MissedTicks, c.Hits)
			if !busy {
				require.Less(bounds, c.MissedTicks, due/3)
				continue
			}
			lacking := due - min(due, sampled)
			require.Greater(bounds, lacking, due/5, "the kernel delivers them")
			require.Greater(bounds, c.MissedTicks, lacking*8/10)
			ofOthers := uint64((whole - used) / config.Period()) // they may have run amid a lookup
			require.Less(bounds, c.MissedTicks, lacking*2+ofOthers)
		}
	})
}

// While a clock stands still, as that of a CPU that is away does, no tick is missed, nor by what begins and
// ends clocks; and what was missed before stays.
func TestTicksOfOtherClocks(t *testing.T) {
	const standing = 300 * time.Millisecond
	testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
		s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 8 << 20})
		missed := func() uint64 {
			c, err := s.Counters()
			require.NoError(t, err)
			return c.MissedTicks
		}
		for round := range uint64(2) {
			require.NoError(t, s.Start())
			time.Sleep(standing / 10)
			for cpu, c := range s.clocks {
				c.ticks.missed = 1000 * (round + 1) // as if
				require.NoError(t, unix.IoctlSetInt(c.fd, unix.PERF_EVENT_IOC_DISABLE, 0), "CPU %d", cpu)
			}
			before := maps.Clone(s.clocks)
			least := 1000 * (1 + 2*round) * uint64(len(before)) // of this round and that before
			for range 3 {
				time.Sleep(standing)
				_, err := s.UpdateCPUs()
				require.NoError(t, err)
				require.GreaterOrEqual(t, missed(), least)
			}
			for cpu, c := range before {
				require.NotSame(t, c, s.clocks[cpu])
				require.NotZero(bounds, s.clocks[cpu].ticks.before, "hits of other clocks are not its own")
			}
			require.NoError(t, s.Stop())
			require.GreaterOrEqual(t, missed(), least)
			require.Less(bounds, missed(), least+uint64(len(before))*uint64(standing/s.config.Period())/2)
		}
	})
}

// newLargeMap is full.
func newLargeMap(t *testing.T, entries int) *ebpf.Map {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: uint32(entries)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	keys, values := make([]uint64, entries), make([]uint64, entries)
	for i := range keys {
		keys[i] = uint64(i)
	}
	_, err = m.BatchUpdate(keys, values, nil)
	require.NoError(t, err)
	return m
}
