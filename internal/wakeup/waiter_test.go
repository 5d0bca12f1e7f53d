//go:build linux

package wakeup_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

func newWaiter(t *testing.T, interval time.Duration, fd int) *wakeup.Waiter {
	t.Helper()
	w, err := wakeup.New(interval, fd)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// A tick costs one sleep of one thread, or two where something else happens; a timer of Go's
// takes four to six. The least of some rounds counts: on a busy machine other threads of this
// process, those of the garbage collector for one, sleep more often, and at times only.
func TestTickCost(t *testing.T) {
	const ticks, most, rounds = 40, 2, 20
	least := int64(1 << 62)
	for round := 0; round < rounds && least > most*ticks; round++ {
		time.Sleep(time.Duration(round) * 50 * time.Millisecond)
		least = min(least, sleepsIn(t, ticks))
	}
	t.Logf("%d sleeps in %d ticks", least, ticks)
	require.LessOrEqual(t, least, int64(most*ticks))
}

// sleepsIn returns how often the threads of this process sleep in so many ticks.
func sleepsIn(t *testing.T, ticks int) int64 {
	t.Helper()
	w := newWaiter(t, 20*time.Millisecond, -1)
	before := sleeps(t)
	for n := 0; n < ticks; {
		ticked, err := w.Wait(nil)
		require.NoError(t, err)
		if ticked {
			n++
		}
	}
	return sleeps(t) - before
}

// sleeps of all threads of this process.
func sleeps(t *testing.T) int64 {
	t.Helper()
	var usage unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return usage.Nvcsw
}

// Ticks are neither early nor more than there are intervals, and those that were not waited
// for are one.
func TestTicks(t *testing.T) {
	const interval = 10 * time.Millisecond
	began := time.Now()
	w := newWaiter(t, interval, -1)
	for n := 1; n <= 5; {
		ticked, err := w.Wait(nil)
		require.NoError(t, err)
		if ticked {
			require.GreaterOrEqual(t, time.Since(began), time.Duration(n)*interval)
			n++
		}
	}
	time.Sleep(5 * interval)
	ticked, err := w.Wait(nil)
	require.NoError(t, err)
	require.True(t, ticked)
	began = time.Now()
	for ticked = false; !ticked; {
		ticked, err = w.Wait(nil)
		require.NoError(t, err)
	}
	require.Less(t, time.Since(began), time.Minute)
}

// Ticks come at multiples of the interval on the clock, also after one that was asked for, and
// not before an interval has passed.
func TestTogether(t *testing.T) {
	const interval = time.Hour
	w := newWaiter(t, interval, -1)
	check := func(least, most time.Duration) {
		before := monotonic(t)
		left, err := w.Left()
		after := monotonic(t)
		require.NoError(t, err)
		tick := (after + left).Truncate(interval)
		require.GreaterOrEqual(t, tick, before+left, "it lies between these")
		require.GreaterOrEqual(t, tick, before+least)
		require.LessOrEqual(t, tick, after+most)
	}
	check(interval-time.Minute, 2*interval)
	w.Tick()
	ticked, err := w.Wait(nil)
	require.NoError(t, err)
	require.True(t, ticked)
	check(0, interval)
}

// Ticks come in the longer interval, but in a hurry.
func TestHurry(t *testing.T) {
	const interval, slow = time.Hour, 10_000 * time.Hour
	w, err := wakeup.NewSlowing(interval, slow, -1)
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	left := func() time.Duration {
		left, err := w.Left()
		require.NoError(t, err)
		return left
	}
	tick := func() {
		w.Tick()
		ticked, err := w.Wait(nil)
		require.NoError(t, err)
		require.True(t, ticked)
	}
	require.LessOrEqual(t, left(), 2*interval, "the first")
	tick()
	require.Greater(t, left(), interval)
	w.Hurry(time.Hour)
	require.LessOrEqual(t, left(), interval)
	tick()
	require.LessOrEqual(t, left(), interval, "it lasts")
	w.Hurry(0)
	tick()
	require.Greater(t, left(), interval, "and ends")
	w.Hurry(0)
	require.LessOrEqual(t, left(), interval)
	require.NoError(t, w.Close())
	w.Hurry(time.Hour)
}

func monotonic(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return time.Duration(now.Nano())
}

// A timer expires once, not before its time, and is told of once.
func TestTimer(t *testing.T) {
	const after = 20 * time.Millisecond
	timer, err := wakeup.NewTimer()
	require.NoError(t, err)
	defer func() { require.NoError(t, timer.Close()) }()
	require.False(t, timer.Expired())
	began := time.Now()
	timer.Set(after)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(timer.FD()), Events: unix.POLLIN}}, 60_000)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.GreaterOrEqual(t, time.Since(began), after)
	require.True(t, timer.Expired())
	require.False(t, timer.Expired())
}

// The descriptor ends a wait each time that something is written to it, read or not, and no
// tick is told of.
func TestDescriptor(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	require.NoError(t, err)
	events := os.NewFile(uintptr(fd), "events")
	defer events.Close()
	w := newWaiter(t, time.Hour, fd)
	for range 3 {
		time.AfterFunc(10*time.Millisecond, func() { _, _ = events.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0}) })
		ticked, err := w.Wait(nil)
		require.NoError(t, err)
		require.False(t, ticked)
	}
	ticked, err := w.Wait(func() bool { return true }) // which does not wait
	require.NoError(t, err)
	require.False(t, ticked)
}

// Tick ends a wait or the next one, and ticks go on to come.
func TestTick(t *testing.T) {
	for _, first := range []time.Duration{0, 10 * time.Millisecond} {
		w := newWaiter(t, time.Hour, -1)
		if first == 0 {
			w.Tick()
		} else {
			time.AfterFunc(first, w.Tick)
		}
		ticked, err := w.Wait(nil)
		require.NoError(t, err)
		require.True(t, ticked)
	}
	w := newWaiter(t, 20*time.Millisecond, -1)
	w.Tick()
	for n := 0; n < 3; {
		ticked, err := w.Wait(nil)
		require.NoError(t, err)
		if ticked {
			n++
		}
	}
}

// Close ends a wait with an error, and all that come after it.
func TestClose(t *testing.T) {
	w := newWaiter(t, time.Hour, -1)
	time.AfterFunc(10*time.Millisecond, func() { _ = w.Close() })
	_, err := w.Wait(nil)
	require.Error(t, err)
	_, err = w.Wait(nil)
	require.Error(t, err)
	w.Tick()
	require.NoError(t, w.Close())
}

// A wait that takes a tick at that moment does not hold up the end.
func TestCloseWhileItTicks(t *testing.T) {
	for range 2000 {
		w := newWaiter(t, 20*time.Microsecond, -1)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				if _, err := w.Wait(nil); err != nil {
					return
				}
			}
		}()
		time.Sleep(100 * time.Microsecond)
		require.NoError(t, w.Close())
		<-ended
	}
}
