//go:build linux

package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

// Who takes long is told when his time has come, once, and in the order of the times; who has
// done by then is not.
func TestLookout(t *testing.T) {
	alarm, err := wakeup.NewAlarm()
	require.NoError(t, err)
	l := newLookout(alarm)
	told := make(chan *worker)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.run(func(w *worker) { told <- w })
	}()
	await := func() *worker {
		t.Helper()
		select {
		case w := <-told:
			return w
		case <-time.After(time.Minute):
			require.Fail(t, "nobody is told")
			return nil
		}
	}
	first, second, third := &worker{}, &worker{}, &worker{}
	began := time.Now()
	l.set(second, 60*time.Millisecond)
	l.set(first, 20*time.Millisecond)
	l.set(third, 10*time.Millisecond)
	l.set(third, 0)
	require.Same(t, first, await())
	require.GreaterOrEqual(t, time.Since(began), 20*time.Millisecond)
	require.Same(t, second, await())
	require.GreaterOrEqual(t, time.Since(began), 60*time.Millisecond)
	l.set(first, time.Hour)
	l.set(first, 0)
	require.Empty(t, l.looks)
	require.Zero(t, l.at, "nobody is looked after")
	l.set(first, time.Millisecond)
	require.Same(t, first, await())
	require.NoError(t, alarm.Close())
	<-ended
}
