//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	contextRate = 97
	// contextGoal is how long after its publication a name is to be seen.
	contextGoal = 100 * time.Millisecond
	// childSlack is how far the log of a forked child may be from what it tells of.
	childSlack = 100 * time.Millisecond
	// contextLeft is how long before its end a program may publish a name that is
	// not found any more: samples come in bursts, and its memory goes with it.
	contextLeft = 300 * time.Millisecond
)

// contextRun is a program whose process context comes late and grows.
type contextRun struct {
	variant string
	args    []string
	log     string
	writer  *testutil.Writer
	hits    []contextHit
}

// contextHit is a sample and the resource that it came under.
type contextHit struct {
	hit
	batch uint64 // start of it
}

// TestContexts: programs that publish a process context after a while, extend it
// again and again and use each new name at once; a child that inherits a thread's
// record and no context, publishes its own, and runs another program. Every
// sample has exactly the attributes that its record had.
func TestContexts(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	seconds := pick(15, 8)
	runs := []*contextRun{
		{variant: "writer-ctx-exe", args: []string{"--fork"}},
		{variant: "writer-ctx-lib"},
		{variant: "writer-ctx-dlopen", args: []string{"--in-place"}},
	}
	var hits []contextHit
	out := &sink{t: t, visit: func(b flatBatch) {
		for i := range b.hits {
			hits = append(hits, contextHit{b.hits[i], b.start})
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = contextRate
		c.ReportInterval = 500 * time.Millisecond
	})
	for _, run := range runs {
		run.log = filepath.Join(t.TempDir(), "log")
		args := append([]string{"updates", "--log", run.log, "--dwell-us", "300000", "--service", "shop", "--seconds", fmt.Sprint(seconds)}, run.args...)
		run.writer = testutil.Start(t, run.variant, args...)
	}
	for _, run := range runs {
		run.writer.Wait(time.Duration(seconds)*time.Second + time.Minute)
	}
	r.stop()
	toUnix := monoToUnix(t)
	total := 0
	for _, run := range runs {
		log := readContextLog(t, run.log, toUnix)
		for _, h := range hits {
			if h.pid == int64(run.writer.PID) {
				run.hits = append(run.hits, h)
			}
		}
		total += run.checkUpdates(t, log)
		if log.child != 0 {
			total += checkChild(t, hits, log)
		}
	}
	testutil.ReportLabelAssertions(t.Name(), total)
}

// contextLog is what a program says that it did, in Unix ns.
type contextLog struct {
	updates          []uint64
	child            int64
	forked, own, ran uint64
}

func readContextLog(t *testing.T, path string, toUnix uint64) (log contextLog) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var what string
		var n int64
		var at uint64
		_, err := fmt.Sscan(lines.Text(), &what, &n, &at)
		require.NoError(t, err, lines.Text())
		at += toUnix
		switch what {
		case "update":
			require.Len(t, log.updates, int(n))
			log.updates = append(log.updates, at)
		case "child":
			log.child, log.forked = n, at
		case "own":
			log.own = at
		case "exec":
			log.ran = at
		}
	}
	require.NoError(t, lines.Err())
	require.Greater(t, len(log.updates), 5)
	return log
}

// checkUpdates holds each sample against the record that was current. The log
// names the time right after the publication, so a sample may be one ahead.
func (run *contextRun) checkUpdates(t *testing.T, log contextLog) (checked int) {
	slices.SortFunc(run.hits, func(a, b contextHit) int { return int(int64(a.timeUnixNano) - int64(b.timeUnixNano)) })
	first := make([]time.Duration, len(log.updates))
	missing := 0
	end := run.hits[len(run.hits)-1].timeUnixNano - uint64(contextLeft)
	for _, h := range run.hits {
		if h.timeUnixNano > end {
			break
		}
		before, _ := slices.BinarySearch(log.updates, h.timeUnixNano)
		keys := countKeys(t, &h)
		if keys < before {
			missing++
			t.Logf("%s: %d names, not %d, %v after the last update", run.variant, keys, before, time.Duration(h.timeUnixNano-log.updates[before-1]))
			continue
		}
		require.LessOrEqual(t, keys, before+1)
		checked++
		if keys == 0 {
			continue
		}
		require.NotZero(t, h.link)
		require.Equal(t, "true", h.attrs["trace_sampled"])
		require.Equal(t, "shop", h.resource["service.name"])
		for n := range keys {
			if first[n] == 0 {
				first[n] = max(1, time.Duration(int64(h.timeUnixNano-log.updates[n])))
			}
		}
	}
	first = slices.DeleteFunc(first, func(d time.Duration) bool { return d == 0 }) // the last ones
	require.Greater(t, len(first), 5)
	slices.Sort(first)
	p50, p99 := first[len(first)/2], first[len(first)*99/100]
	fmt.Printf("%-18s %4d samples checked, %d without a name, %d updates, first sample after p50 %v p99 %v (goal %v)\n",
		run.variant, checked, missing, len(first), p50.Round(time.Millisecond), p99.Round(time.Millisecond), contextGoal)
	require.Zero(t, missing)
	return checked
}

// countKeys returns how many of key_0, key_1 ... there are; each has its number
// as its value, and there are no gaps.
func countKeys(t *testing.T, h *contextHit) int {
	n := 0
	for key := range h.attrs {
		if strings.HasPrefix(key, "key_") {
			n++
		}
	}
	for i := range n {
		require.Equal(t, fmt.Sprint(i), h.attrs[fmt.Sprint("key_", i)])
	}
	return n
}

// checkChild: link only after the fork, names from its own context on, nothing
// after the exec.
func checkChild(t *testing.T, hits []contextHit, log contextLog) int {
	var inherited, own, other int
	slack := uint64(childSlack)
	for _, h := range hits {
		if h.pid != log.child {
			continue
		}
		at := h.timeUnixNano
		switch {
		case at < log.own-slack:
			inherited++
			assert.NotZero(t, h.link)
			assert.Zero(t, countKeys(t, &h), "the child has no process context")
			if h.batch+uint64(2*time.Second) < log.own {
				assert.NotContains(t, h.resource, "service.name")
			}
		case at > log.own && at < log.ran:
			own++
			assert.NotZero(t, h.link)
			assert.Equal(t, 2, countKeys(t, &h))
			assert.Equal(t, "child", h.resource["service.name"])
		case at > log.ran+slack:
			other++
			assert.Zero(t, h.link)
			assert.Zero(t, countKeys(t, &h))
			assert.NotContains(t, h.resource, "service.name")
			assert.Equal(t, "spin-plain", h.executable)
		}
	}
	fmt.Printf("forked child: %d samples with its parent's record, %d with its own, %d of another program\n", inherited, own, other)
	require.NotZero(t, inherited)
	require.NotZero(t, own)
	require.NotZero(t, other)
	return inherited + own + other
}
