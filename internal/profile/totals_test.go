package profile

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Totals are what Requests' profiles have: each sample once, under its process, set and state.
func TestTotals(t *testing.T) {
	a := labels.NewSet(false, labels.Label{Key: "tenant", Value: "a"})
	b := NewBuilder(Options{Period: 1000, OffCPU: &OffCPU{Threshold: 1}, ThreadID: true, ThreadName: true})
	add := func(process uint64, set *labels.Set, state record.ThreadState, tid uint32, ns int64) {
		b.Add(&Sample{Process: process, Set: set, State: state, TID: tid, OffCPUNs: ns, TimeUnixNano: 1})
	}
	add(1, a, record.ThreadSleeping, 1, 5)
	add(1, a, record.ThreadSleeping, 2, 6)
	add(1, a, record.ThreadSleeping, 1, 7)
	add(1, a, record.ThreadRunnable, 1, 8)
	add(1, nil, record.ThreadSleeping, 1, 9)
	add(2, a, record.ThreadSleeping, 1, math.MaxInt64)
	add(2, a, record.ThreadSleeping, 1, 10)

	type key struct {
		process uint64
		set     *labels.Set
		state   record.ThreadState
	}
	samples, ns := map[key]int{}, map[key]int64{}
	entries := 0
	for total := range b.Totals() {
		k := key{total.Process, total.Set, total.State}
		samples[k] += total.Samples
		ns[k] += total.OffCPUNs
		entries++
	}
	require.Equal(t, len(b.entries), entries, "one for each thread, too")
	require.Equal(t, map[key]int{
		{1, a, record.ThreadSleeping}: 3, {1, a, record.ThreadRunnable}: 1, {1, nil, record.ThreadSleeping}: 1, {2, a, record.ThreadSleeping}: 2,
	}, samples)
	require.Equal(t, map[key]int64{
		{1, a, record.ThreadSleeping}: 18, {1, a, record.ThreadRunnable}: 8, {1, nil, record.ThreadSleeping}: 9, {2, a, record.ThreadSleeping}: math.MaxInt64,
	}, ns)
	for range b.Totals() {
		break
	}
	b.Reset()
	for range b.Totals() {
		t.Fatal("nothing was added")
	}
}
