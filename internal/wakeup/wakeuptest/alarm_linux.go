package wakeuptest

import (
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

// Alarm returns what process.Table needs to run.
func Alarm(tb testing.TB) *wakeup.Alarm {
	tb.Helper()
	alarm, err := wakeup.NewAlarm()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := alarm.Close(); err != nil {
			tb.Error(err)
		}
	})
	return alarm
}
