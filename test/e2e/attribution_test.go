//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// attributionBatches complete ones, of each run; so many runs go on together.
var (
	attributionBatches  = size(3, 1, 1)
	attributionTogether = size(4, 6, 4) // four give each writer half a CPU
)

const (
	attributionRate  = 997
	attributionBatch = 4 * time.Second
	// attributionSamples is what a batch must have more of to tell a merge of label sets;
	// on a busy machine some have less, and do not count.
	attributionSamples  = 150
	attributionPatience = 70 // batches
	// attributionFalseAlarms is the chance that a right build fails, over all checks together.
	attributionFalseAlarms = 1e-4
)

// TestAttribution: a thread that runs one function under changing labels. In
// every batch the share of samples of each tenant agrees with the CPU time that
// the thread itself measured.
//
// The statistics: the label at a sample's instant is a draw from the tenants'
// shares of CPU time in the batch. The dwell times are random (or, for A/B,
// incommensurable with the period), so the counts scatter no more than
// multinomial ones and Pearson's chi-square is a valid, somewhat conservative
// test. Its level is that of attributionFalseAlarms divided by the number of
// checks (Bonferroni).
func TestAttribution(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	testutil.Measure(t, measureAttribution)
}

func measureAttribution(t *testing.T, bounds *testutil.Bounds) {
	var runs []*attributionRun
	for _, abi := range []string{"v0", "v1", "ctx"} {
		for _, load := range []string{"exe", "lib", "dlopen"} {
			runs = append(runs, &attributionRun{variant: "writer-" + abi + "-" + load, pattern: "random"})
		}
		runs = append(runs, &attributionRun{variant: "writer-" + abi + "-exe", pattern: "30,90"})
	}
	level := testutil.Bonferroni(attributionFalseAlarms, len(runs)*attributionBatches)

	fmt.Printf("%-20s %-8s %6s %8s %10s  %s\n", "writer", "pattern", "batch", "samples", "p", "share measured (true), %")
	for group := range slices.Chunk(runs, attributionTogether) {
		checkAttribution(t, bounds, group, level)
	}
	fmt.Printf("%d checks at level %.1e each: false alarm in less than %.0e of all runs\n",
		len(runs)*attributionBatches, level, attributionFalseAlarms)
	compared := 0
	for _, run := range runs {
		compared += run.compared
	}
	testutil.ReportLabelAssertions(t.Name(), compared)
}

type attributionRun struct {
	variant, pattern string
	log              string
	writer           *testutil.Writer
	batches          []attributionCounts
	compared         int // samples
}

type attributionCounts struct {
	start, end uint64 // Unix ns
	byTenant   map[string]uint64
}

// checkAttribution runs a group of writers under one receiver and checks every batch that the writers' life covers.
func checkAttribution(t *testing.T, bounds *testutil.Bounds, runs []*attributionRun, level float64) {
	byPID := map[int64]*attributionRun{}
	seconds := fmt.Sprint(int((attributionPatience + 3) * attributionBatch / time.Second))
	for i, run := range runs {
		run.log = filepath.Join(t.TempDir(), fmt.Sprintf("switch-%d.log", i))
		args := []string{"switch", "--seconds", seconds, "--log", run.log}
		if run.pattern != "random" {
			args = append(args, "--pattern", run.pattern)
		}
		run.writer = testutil.Start(t, run.variant, args...)
		byPID[int64(run.writer.PID)] = run
	}
	enough := make(chan struct{})
	var once sync.Once
	batches := 0
	out := &sink{t: t, visit: func(b flatBatch) {
		counts := map[*attributionRun]map[string]uint64{}
		for _, h := range b.hits {
			run := byPID[h.pid]
			if run == nil {
				continue
			}
			if counts[run] == nil {
				counts[run] = map[string]uint64{}
			}
			counts[run][tenantOf(run.variant, &h)]++
		}
		batches++
		if batches == 1 {
			return // the receiver may have met the writers in the course of it
		}
		for run, byTenant := range counts {
			if sum(byTenant) > attributionSamples {
				run.batches = append(run.batches, attributionCounts{b.start, b.end, byTenant})
			}
		}
		for _, run := range runs {
			if len(run.batches) < attributionBatches {
				return
			}
		}
		once.Do(func() { close(enough) })
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = attributionRate
		c.ReportInterval = attributionBatch
	}, func(o *pipeline.Options) { o.Ring.Bytes = 16 << 20 })
	select {
	case <-enough:
	case <-time.After(time.Duration(attributionPatience) * attributionBatch):
		for _, run := range runs {
			t.Logf("%s: %d batches with more than %d samples", run.variant, len(run.batches), attributionSamples)
		}
		require.Fail(bounds, "too few batches with enough samples")
	}
	toUnix := monoToUnix(t)
	r.stop()
	for _, run := range runs {
		run.writer.Stop()
		run.check(t, bounds, toUnix, level)
	}
}

func sum(counts map[string]uint64) (total uint64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// tenantOf is what a sample says its tenant is.
func tenantOf(variant string, h *hit) string {
	if !strings.Contains(variant, "-ctx-") {
		return h.attrs[prefix+"tenant"]
	}
	if h.link == (link{}) {
		return ""
	}
	i, ok := testutil.SwitchTenant(h.link.traceID, h.link.spanID)
	if !ok {
		return fmt.Sprintf("foreign link %x", h.link)
	}
	return fmt.Sprint(i)
}

func (run *attributionRun) check(t *testing.T, bounds *testutil.Bounds, toUnix uint64, level float64) {
	log, err := testutil.ReadSwitchLog(run.log)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(run.batches), attributionBatches, run.variant)
	for i, b := range run.batches[:attributionBatches] {
		truth, err := log.Window(b.start-toUnix, b.end-toUnix)
		require.NoError(t, err, run.variant)
		names := log.Tenants
		if strings.Contains(run.variant, "-ctx-") {
			names = nil
			for i := range log.Tenants {
				names = append(names, fmt.Sprint(i))
			}
		}
		var observed []uint64
		var shares []float64
		total := sum(b.byTenant)
		var cpu time.Duration
		for _, d := range truth {
			cpu += d
		}
		var figures []string
		seen := maps.Clone(b.byTenant)
		for k, name := range names {
			share := truth[log.Tenants[k]].Seconds() / cpu.Seconds()
			observed = append(observed, seen[name])
			shares = append(shares, share)
			figures = append(figures, fmt.Sprintf("%s %.1f (%.1f)", log.Tenants[k], 100*float64(seen[name])/float64(total), 100*share))
			delete(seen, name)
		}
		require.LessOrEqual(bounds, seen[""], uint64(1), "%s: samples without a label", run.variant)
		delete(seen, "")
		require.Empty(t, seen, "%s: samples with foreign labels", run.variant)
		fit, err := testutil.ChiSquare(observed, shares)
		require.NoError(t, err)
		run.compared += int(total)
		fmt.Printf("%-20s %-8s %6d %8d %10.2g  %s\n", run.variant, run.pattern, i+1, total, fit.P, strings.Join(figures, ", "))
		require.Greater(bounds, fit.P, level, "%s: the samples disagree with the truth", run.variant)

		// The check has teeth: had two label sets been merged, it would have failed.
		observed[0], observed[1] = observed[0]+observed[1], 0
		merged, err := testutil.ChiSquare(observed, shares)
		require.NoError(t, err)
		require.Less(bounds, merged.P, level, "%s: too few samples to notice a merge", run.variant)
	}
}
