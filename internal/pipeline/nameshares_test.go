//go:build linux && (amd64 || arm64)

package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

// Who has used up the time for names waits; others have a reserve, which has an end.
func TestNameShares(t *testing.T) {
	const share = 0.2
	now := int64(0)
	clock := func() int64 { return now }
	limits := &budgets{cpu: budget.NewCPU(share, clock)}
	s := newNameShares(limits, share, clock)
	spend := func(uid uint32, took time.Duration) {
		reserved := s.reserved(uid)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.charge(uid, took, reserved)
	}
	require.False(t, s.busy(1))
	const large = 20 * time.Second
	spend(1, large)
	now += int64(time.Second)
	require.True(t, s.busy(1))
	require.False(t, s.busy(2))
	require.EqualValues(t, 1, limits.cpu.Use().Delayed[budget.Names], "who waits")

	reserve := share * budget.Names.Share() * reserveShare
	const piece, during = 10 * time.Millisecond, time.Minute
	others := time.Duration(0)
	for end := now + int64(during); now < end; now += int64(time.Millisecond) {
		for uid := range uint32(4) {
			if uid != 1 && !s.busy(uid) {
				spend(uid, piece)
				others += piece
			}
		}
		require.True(t, s.busy(1))
	}
	require.InDelta(t, reserve*during.Seconds(), others.Seconds(), 0.1)

	spend(2, large)
	require.True(t, s.busy(3), "the reserve is used up, too")
	now += int64(time.Hour)
	for uid := range uint32(4) {
		require.False(t, s.busy(uid), "all is paid back")
	}
	require.False(t, s.hasMost(1))
	require.Empty(t, s.spent)

	spend(1, large)
	require.False(t, s.busy(3))
	s.spend(3, func() {})
	require.Len(t, s.spent, 2)
	require.EqualValues(t, 1, limits.cpu.Use().Delayed[budget.Names], "nobody waited")
	require.True(t, s.busy(1))
	require.EqualValues(t, 2, limits.cpu.Use().Delayed[budget.Names])
}

// What is being done is charged when somebody asks, by the clock of its thread, and all of it once.
func TestNameSharesOfWhatRuns(t *testing.T) {
	now, threads := int64(time.Hour), map[int]int64{7: 1e9, 8: 2e9}
	clock := func() int64 { return now }
	limits := &budgets{cpu: budget.NewCPU(0.2, clock)}
	s := newNameShares(limits, 0.2, clock)
	s.threadTime = func(tid int) int64 { return threads[tid] }
	computes, waits := s.begin(1, 7), s.begin(2, 8)
	now += int64(meterEvery)
	require.False(t, s.busy(1))
	threads[7] += int64(5 * time.Second)
	now += int64(meterEvery)
	require.True(t, s.busy(1), "it computes")
	require.False(t, s.busy(2), "it waits, and there is a reserve")
	threads[7] += int64(time.Second)
	threads[8] += int64(time.Millisecond)
	s.end(computes)
	s.end(waits)
	require.Equal(t, 6001*time.Millisecond, limits.cpu.Use().Spent[budget.Names])
	require.Empty(t, s.running)

	s.threadTime = budget.ThreadTime
	s.spend(3, func() {
		for began := threadTime(); threadTime()-began < int64(20*time.Millisecond); {
		}
		now += int64(meterEvery)
		s.chargeRunning()
		require.GreaterOrEqual(t, limits.cpu.Use().Spent[budget.Names], 6021*time.Millisecond)
	})
	require.Less(t, limits.cpu.Use().Spent[budget.Names], 7*time.Second)
}
