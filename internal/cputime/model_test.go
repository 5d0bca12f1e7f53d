package cputime

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Against a plain sum by name, with all that can happen at random: each sample counts once,
// no sum goes back under one start, and no start lies before what was said last.
func TestSumsModel(t *testing.T) {
	t.Run("few users", func(t *testing.T) { testSumsModel(t, 3, func(*Options, *rand.Rand) {}) })
	t.Run("many users, and memory is short", func(t *testing.T) {
		testSumsModel(t, 8, func(o *Options, rng *rand.Rand) {
			o.MaxUsers = 2
			o.Excess = func() int { return rng.IntN(2) * rng.IntN(10_000) }
		})
	})
}

func testSumsModel(t *testing.T, users int, change func(*Options, *rand.Rand)) {
	rng := rand.New(rand.NewPCG(1, 2))
	o := testOptions()
	o.MaxSeries, o.Expiry = 20, 20*time.Second
	change(&o, rng)
	s := New(o)
	r := &fakeProcesses{names: map[uint64]string{}}
	ended := map[uint64]bool{}
	alive := func(p uint64) bool { return !ended[p] }
	last := map[string]point{} // as it was last seen
	gone := 0.0
	samples := 0
	for now := uint64(1000); now < 3000; now += 5 {
		var list []hits
		for range rng.IntN(20) {
			p := rng.Uint64N(8) + now/200*4
			r.names[p] = fmt.Sprint(p % 10)
			list = append(list, hits{process: p, set: set("tenant", fmt.Sprint(rng.IntN(12))), n: 1 + rng.IntN(3)})
			ended[p] = false
		}
		for _, h := range list {
			samples += h.n
		}
		add(s, Batch{User: uint32(rng.IntN(users)), StartUnixNano: (now - 5) * second, EndUnixNano: now * second}, r, list...)
		for p := range r.names {
			if rng.IntN(4) == 0 {
				ended[p] = true
			}
		}
		c := s.Collect(now*second, alive)
		if rng.IntN(5) > 0 {
			s.Delivered()
		}
		requireAccounts(t, s)
		got := points(t, c.Metrics)
		for name, p := range got {
			before, known := last[name]
			switch {
			case known && before.start == p.start:
				require.GreaterOrEqual(t, p.value, before.value, name)
			case known:
				require.GreaterOrEqual(t, p.start, before.time, name)
				gone += before.value
			}
			last[name] = p
		}
	}
	sum := gone
	for p := range maps.Values(last) {
		sum += p.value
	}
	require.InDelta(t, float64(samples)*0.01, sum, 1e-6)
}

// requireAccounts has each account count what is its own, and the Sums what all of them do.
func requireAccounts(t *testing.T, s *Sums) {
	t.Helper()
	series, bytes := 0, processBytes*len(s.owners)
	for _, a := range append(slices.Collect(maps.Values(s.accounts)), &s.others) {
		ofSeries, ofBytes := 0, 0
		for of := range a.resources {
			require.Same(t, of, s.resources[of.identity])
			require.Same(t, a, of.account)
			ofSeries += len(of.series)
			ofBytes += of.bytes() + of.seriesBytes()
		}
		require.Equal(t, ofSeries, a.series)
		require.Equal(t, ofBytes, a.bytes)
		series += ofSeries
		bytes += ofBytes
	}
	require.Equal(t, series, s.series)
	require.Equal(t, bytes, s.bytes)
}
