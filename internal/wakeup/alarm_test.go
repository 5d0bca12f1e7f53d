//go:build linux

package wakeup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

func newAlarm(t *testing.T) *wakeup.Alarm {
	t.Helper()
	a, err := wakeup.NewAlarm()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// waitFor ends with the alarm, which must not go off before some time has passed.
func waitFor(t *testing.T, a *wakeup.Alarm, least time.Duration) {
	t.Helper()
	began := time.Now()
	require.NoError(t, a.Wait())
	require.GreaterOrEqual(t, time.Since(began), least)
	require.Less(t, time.Since(began), time.Minute)
}

// An alarm goes off once, whether somebody waits then or later, by the last time that it was
// set to.
func TestAlarm(t *testing.T) {
	a := newAlarm(t)
	for _, after := range []time.Duration{20 * time.Millisecond, 0, -time.Hour} {
		a.Set(after)
		waitFor(t, a, after)
	}
	a.Set(time.Millisecond)
	time.Sleep(10 * time.Millisecond)
	waitFor(t, a, 0)
	a.Set(time.Hour)
	a.Set(20 * time.Millisecond)
	waitFor(t, a, 20*time.Millisecond)
	a.Set(0)
	a.Set(20 * time.Millisecond)
	waitFor(t, a, 20*time.Millisecond)
	a.Set(0)
	a.Clear()
	time.AfterFunc(30*time.Millisecond, func() { a.Set(0) })
	waitFor(t, a, 30*time.Millisecond)
}

// To set an alarm again and again wakes nobody, and to wait for it costs one sleep of one
// thread, or two where something else happens.
func TestAlarmCost(t *testing.T) {
	const times, most = 40, 2
	least := int64(1 << 62)
	for range 3 { // the garbage collector may wake up meanwhile
		a := newAlarm(t)
		before := sleeps(t)
		for range times {
			for range 10 {
				a.Set(time.Hour)
			}
			a.Set(20 * time.Millisecond)
			require.NoError(t, a.Wait())
		}
		least = min(least, sleeps(t)-before)
	}
	t.Logf("%d sleeps in %d alarms", least, times)
	require.LessOrEqual(t, least, int64(most*times))
}

// Close ends a wait with an error, and all that come after it. A closed alarm is set in vain.
func TestAlarmClosed(t *testing.T) {
	a := newAlarm(t)
	time.AfterFunc(10*time.Millisecond, func() { _ = a.Close() })
	require.Error(t, a.Wait())
	a.Set(0)
	a.Clear()
	require.Error(t, a.Wait())
	require.NoError(t, a.Close())
}

// An alarm that goes off at that moment does not hold up the end.
func TestAlarmClosedWhileItGoesOff(t *testing.T) {
	for range 2000 {
		a := newAlarm(t)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for a.Wait() == nil {
				a.Set(20 * time.Microsecond)
			}
		}()
		a.Set(0)
		time.Sleep(100 * time.Microsecond)
		require.NoError(t, a.Close())
		<-ended
	}
}
