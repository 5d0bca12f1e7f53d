package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// lateBy is for how long programs of TestLatePublication map code before they publish.
var lateBy = size(
	[]time.Duration{100 * time.Millisecond, 3 * time.Second, 10 * time.Second, time.Minute},
	[]time.Duration{2 * time.Second},
	[]time.Duration{time.Second})

const (
	lateRate = 997
	// lateLimit of CPU time that a program spends from its publication on until its
	// samples have it. It burns all the time, and has no CPU to itself where there are
	// fewer CPUs than busy threads.
	lateLimit = 500 * time.Millisecond
	lateEnds  = time.Second // after that
)

// TestLatePublication: what a program publishes after it has mapped code for long, as one
// with a just-in-time compiler does, is on its samples soon, also where the kernel does not
// tell of it and the program maps nothing more.
func TestLatePublication(t *testing.T) {
	writers := testutil.BuildWriters(t)
	for _, late := range lateBy {
		t.Run(late.String(), func(t *testing.T) {
			testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) { measureLatePublication(t, bounds, writers, late) })
		})
	}
}

func measureLatePublication(t *testing.T, bounds *testutil.Bounds, writers string, late time.Duration) {
	before, without, with := 0, 0, 0
	var pid int64
	out := &sink{t: t, visit: func(b flatBatch) {
		for i := range b.hits {
			h := &b.hits[i]
			switch {
			case h.pid != pid:
			case slices.Contains(h.functions, "late_before"):
				before++
			case !slices.Contains(h.functions, "late_after"):
			case h.resource["service.name"] == "late":
				with++
			default:
				without++
			}
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) { c.SamplesPerSecond = lateRate })
	w := testutil.StartPath(t, writers+"/spin-plain", "late", "--service", "late", "--seconds", "600",
		"--warmup-ms", strconv.FormatInt(late.Milliseconds(), 10))
	out.mu.Lock()
	pid = int64(w.PID)
	out.mu.Unlock()
	enough := func() bool {
		out.mu.Lock()
		defer out.mu.Unlock()
		return with+without >= int(lateEnds.Seconds()*lateRate)
	}
	require.Eventually(t, enough, 10*time.Minute, 100*time.Millisecond)
	r.stop()

	missed := time.Duration(without) * time.Second / lateRate
	fmt.Printf("published after %v, %d samples: the next %v of CPU time are without it, %d samples with it\n", late, before, missed.Round(time.Millisecond), with)
	require.Greater(bounds, before, int(late.Seconds()*lateRate/10), "it has run before")
	require.NotZero(bounds, with)
	require.LessOrEqual(bounds, missed, lateLimit)
}
