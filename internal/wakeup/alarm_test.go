//go:build linux

package wakeup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

func newAlarm(t *testing.T) *wakeup.Alarm {
	t.Helper()
	a, err := wakeup.NewAlarm()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// An alarm comes once, in time, also when it was set or has expired before the wait, and when it is
// set to come sooner than it was.
func TestAlarm(t *testing.T) {
	const after = 5 * time.Millisecond
	a := newAlarm(t)
	for range 3 {
		began := time.Now()
		a.Set(after)
		require.NoError(t, a.Wait())
		require.GreaterOrEqual(t, time.Since(began), after)
	}
	a.Set(time.Microsecond)
	time.Sleep(after)
	require.NoError(t, a.Wait())
	a.Set(time.Hour)
	time.AfterFunc(after, func() { a.Set(after) })
	require.NoError(t, a.Wait())
}

// One that is set anew or to never does not come as it was set before.
func TestAlarmSetAnew(t *testing.T) {
	const soon = 5 * time.Millisecond
	a := newAlarm(t)
	for _, after := range []time.Duration{time.Hour, 0} {
		a.Set(soon)
		a.Set(after)
		waited := make(chan error, 1)
		go func() { waited <- a.Wait() }()
		select {
		case err := <-waited:
			t.Fatal("it came", err)
		case <-time.After(4 * soon):
		}
		a.Set(soon)
		require.NoError(t, <-waited)
	}
}

// A timer that is set to a multiple expires where the ticks of that interval come.
func TestTimerMultiple(t *testing.T) {
	const interval = time.Hour
	timer, err := wakeup.NewTimer()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, timer.Close()) })
	before := monotonic(t)
	timer.SetMultiple(interval)
	var left unix.ItimerSpec
	require.NoError(t, unix.TimerfdGettime(timer.FD(), &left))
	after := monotonic(t)
	tick := (after + time.Duration(left.Value.Nano())).Truncate(interval)
	require.GreaterOrEqual(t, tick, before+time.Duration(left.Value.Nano()), "it lies between these")
	require.Positive(t, tick-before)
	require.LessOrEqual(t, tick-before, interval)
	timer.SetMultiple(time.Millisecond)
	time.Sleep(5 * time.Millisecond)
	require.True(t, timer.Expired())
	require.False(t, timer.Expired())
}

// Close ends a wait and all that come after it, and nothing is set any more.
func TestAlarmClose(t *testing.T) {
	a := newAlarm(t)
	time.AfterFunc(10*time.Millisecond, func() { _ = a.Close() })
	require.Error(t, a.Wait())
	require.Error(t, a.Wait())
	a.Set(time.Nanosecond)
	require.NoError(t, a.Close())
}
