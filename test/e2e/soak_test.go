//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const (
	// soakEnv is how long TestSoak soaks, in minutes.
	soakEnv     = "CUSTOM_LABELS_SOAK_MINUTES"
	soakProgram = "../../build/soak/otelcol-soak"
	// leastRounds are measured after the warm-up, however short it is.
	leastRounds = 8
	// soakWarmUp is what caches may take to fill.
	soakWarmUp = 10 * time.Minute
	// slowAnswer is how long the next consumer takes for a batch when it is slow.
	slowAnswer = 2 * time.Second
)

// TestSoak runs the built collector for long while processes, containers and libraries come
// and go, its configuration is loaded again in each round, and its consumer is slow in some,
// and tells what it holds at the end of each round: nothing may grow once it is warm.
func TestSoak(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	total := soakTime(t)
	warm := min(soakWarmUp, total/3)
	round := min(time.Minute, (total-warm)/leastRounds)
	fmt.Printf("soak: %v, of which %v warm-up, in rounds of %v\n", total, warm, round)

	var slow atomic.Bool
	seen := &soakSeen{labelled: map[string]bool{}}
	out := &sink{t: t, visit: func(b flatBatch) {
		if slow.Load() {
			time.Sleep(slowAnswer)
		}
		seen.visit(b)
	}}
	goroutines := freeAddress(t)
	config := func(rate int) string {
		return fmt.Sprintf("receivers::custom_labels::samples_per_second: %d\n"+
			"extensions::pprof::endpoint: %s\nservice::extensions: [pprof]\n", rate, goroutines)
	}
	rates := []int{97, 47}
	c := startCollectorOf(t, soakProgram, startEndpoint(t, out), config(rates[0]))
	startSoakLoad(t)

	var table soakTable
	fmt.Println(table.head())
	start := time.Now()
	for n := 1; time.Since(start) < total || len(table.after(warm)) < leastRounds; n++ {
		slow.Store(n%4 == 0)
		time.Sleep(round) // each pipeline is as old when it is measured
		row := measureSoak(c, goroutines)
		row.samples, row.processes, row.slow = seen.take(), seen.processes(), slow.Load()
		row.minute = time.Since(start).Minutes()
		table.add(row)
		fmt.Println(row)
		require.NotZero(t, row.samples, "no sample in a round")
		slow.Store(false) // else what it still has to send would hold the reload up
		c.reload(config(rates[n%2]))
	}
	c.stop()
	accounts := c.accounts()
	require.Len(t, accounts, len(table.rows)+1, "one for each pipeline")
	seen.requireAll(t)
	for _, a := range accounts {
		require.Equal(t, a.Hits, a.Emitted+a.FilteredIdle+a.dropped()+a.Pending, "%+v", a)
	}
	table.judge(t, warm)
}

// soakTime is how long it takes.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(soakEnv)
	if text == "" {
		return 3 * time.Minute
	}
	minutes, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	require.Positive(t, minutes)
	return time.Duration(minutes * float64(time.Minute))
}
