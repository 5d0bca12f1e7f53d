//go:build linux && (amd64 || arm64)

package e2e

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

var (
	instantRate    = size(997, 997, 199)
	instantSamples = size(200, 100, 100) // of each writer, at least
)

// instantTolerance: a sample this near to a switch may have the label before or after it:
// the clocks of the writer's log and of the batch are read at slightly different times.
func instantTolerance(t *testing.T) time.Duration {
	return testutil.Threshold(t, "distance to a switch", 200*time.Microsecond, 2*time.Millisecond)
}

// instantMaxBetween bounds the share of samples between a publication and the reading of
// the clock for the log, or, for v0 and the thread context, between two sets. A thread
// that is switched out just there is found there, and emulators take interrupts at some
// places rather than others.
func instantMaxBetween(t *testing.T) float64 {
	return testutil.Threshold(t, "share between two sets", 0.01, 0.05)
}

const instantDwell = 20 * time.Millisecond

// TestInstant: each sample has the label that was current on its thread at its
// instant, by the time of every switch that the writer logs. It needs no
// statistics, so that it also holds where a host withholds CPU time from a guest.
func TestInstant(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	testutil.Measure(t, measureInstant)
}

func measureInstant(t *testing.T, bounds *testutil.Bounds) {
	runs := map[int64]*instantRun{}
	for _, kind := range []string{
		"v0-exe", "v0-lib", "v0-dlopen", "v1-exe", "v1-lib", "v1-dlopen", "v1-dlopengd", "v1-dlopendesc",
		"ctx-exe", "ctx-lib", "ctx-dlopen",
	} {
		run := &instantRun{variant: "writer-" + kind, log: filepath.Join(t.TempDir(), kind+".log"), tenants: map[string]bool{}}
		run.writer = testutil.Start(t, run.variant, "switch", "--seconds", "600", "--log", run.log,
			"--dwell-us", fmt.Sprint(instantDwell.Microseconds()))
		// So many take the CPU from the receiver, which here is no test of it.
		require.NoError(t, unix.Setpriority(unix.PRIO_PROCESS, run.writer.PID, 10))
		runs[int64(run.writer.PID)] = run
	}
	enough := make(chan struct{})
	var once sync.Once
	out := &sink{t: t, visit: func(b flatBatch) {
		for i := range b.hits {
			if run := runs[b.hits[i].pid]; run != nil {
				run.add(&b.hits[i])
			}
		}
		for _, run := range runs {
			if run.labelled < instantSamples || len(run.tenants) < 2 {
				return
			}
		}
		once.Do(func() { close(enough) })
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = instantRate
		c.ReportInterval = 500 * time.Millisecond
		c.Symbolize = customlabelsreceiver.SymbolizeNone
	}, func(o *pipeline.Options) { o.Ring.Bytes = 16 << 20 })
	select {
	case <-enough:
	case <-time.After(5 * time.Minute):
	}
	toUnix := monoToUnix(t)
	r.stop()
	checked := 0
	for _, run := range runs {
		run.writer.Stop()
		checked += run.check(t, bounds, toUnix)
	}
	testutil.ReportLabelAssertions(t.Name(), checked)
}

type instantRun struct {
	variant, log string
	writer       *testutil.Writer
	samples      []instantSample
	labelled     int
	tenants      map[string]bool // of its labels
}

type instantSample struct {
	timeUnixNano uint64
	tenant       string
}

func (run *instantRun) add(h *hit) {
	s := instantSample{h.timeUnixNano, tenantOf(run.variant, h)}
	if i, err := strconv.Atoi(s.tenant); err == nil { // of a thread context
		s.tenant = fmt.Sprintf("t%d", i)
	}
	run.samples = append(run.samples, s)
	if s.tenant != "" {
		run.labelled++
		run.tenants[s.tenant] = true
	}
}

// check compares every sample since the process became known, and returns their number.
func (run *instantRun) check(t *testing.T, bounds *testutil.Bounds, toUnix uint64) int {
	log, err := testutil.ReadSwitchLog(run.log)
	require.NoError(t, err)
	tolerance := uint64(instantTolerance(t))
	slices.SortFunc(run.samples, func(a, b instantSample) int { return cmp.Compare(a.timeUnixNano, b.timeUnixNano) })
	known := slices.IndexFunc(run.samples, func(s instantSample) bool { return s.tenant != "" })
	require.GreaterOrEqual(t, known, 0, "%s: no sample has labels", run.variant)
	var sharp, near, between int
	for _, s := range run.samples[known:] {
		mono := s.timeUnixNano - toUnix
		current, next, ok := log.At(mono-tolerance, mono+tolerance)
		if !ok {
			continue // the writer has ended
		}
		switch {
		case slices.Equal(current, []string{s.tenant}):
			sharp++
		case slices.Contains(current, s.tenant):
			near++
		case s.tenant == next || s.tenant == "":
			between++
		default:
			require.Fail(t, "wrong label", "%s: %q at an instant of %v", run.variant, s.tenant, current)
		}
	}
	total := sharp + near + between
	fmt.Printf("%-20s %6d samples: %6d of the instant, %4d within %v of a switch, %2d between two\n",
		run.variant, total, sharp, near, instantTolerance(t), between)
	require.GreaterOrEqual(bounds, total, instantSamples, run.variant)
	require.Greater(bounds, sharp, total/2, "%s: too near to switches to tell", run.variant)
	require.LessOrEqual(bounds, float64(between), 2+instantMaxBetween(t)*float64(total), run.variant)
	require.GreaterOrEqual(t, len(run.tenants), 2, "%s: always the same label", run.variant)
	return total
}
