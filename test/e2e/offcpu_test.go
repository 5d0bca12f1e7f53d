//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// A way is the labels of one way to wait in mode blocks.
type way struct{ op, turn string }

// offCPURun is what an off-CPU profile said of a writer.
type offCPURun struct {
	variant  string
	truth    string
	pid      int64
	total    map[way]time.Duration
	absences map[way]int
	blocked  map[way]time.Duration // of it: not just preempted
	compared int
	// lacking are stacks without the function that waits: from before rows or names were there.
	lacking []string
}

func (run *offCPURun) attr(h *hit, key string) string {
	if strings.Contains(run.variant, "-ctx-") {
		return h.attrs[key]
	}
	return h.attrs[prefix+key]
}

// take adds up an absence, and checks its labels against its stack: the function in
// which a thread waits is entered after the labels have been published, and left
// before they change.
func (run *offCPURun) take(t *testing.T, h *hit) {
	w := way{run.attr(h, "op"), run.attr(h, "turn")}
	state := h.attrs["custom_labels.thread_state"]
	if w.op == "" {
		return // a peer, or before the receiver has met the writer
	}
	run.compared++
	run.total[w] += h.offCPU
	run.absences[w]++
	if len(h.functions) == 0 || h.functions[0] != "__schedule" {
		t.Errorf("%s: a stack that does not end where threads leave the CPU: %v", run.variant, h.functions)
	}
	in := ""
	for _, name := range h.functions {
		if op, ok := strings.CutPrefix(name, "blocks_"); ok {
			in = op
		}
	}
	if in != "" && in != w.op {
		t.Errorf("%s: label %q in the function of %q: %v", run.variant, w.op, in, h.functions)
	}
	if state == "runnable" {
		return
	}
	run.blocked[w] += h.offCPU
	if w.op == "after" {
		t.Errorf("%s: a label that was set only after the return: %v", run.variant, h.functions)
	}
	if in == "" && w.op != "idle" && w.op != "warmup" {
		run.lacking = append(run.lacking, fmt.Sprintf("label %q, state %s: %v", w.op, state, h.functions))
	}
}

// measured is what the writer itself says.
func (run *offCPURun) measured(t *testing.T) testutil.Truth {
	t.Helper()
	truth, err := testutil.ReadTruth(run.truth)
	require.NoError(t, err)
	require.NotEmpty(t, truth.Sets, run.variant)
	return truth
}

// sampleOffCPU runs writers under a receiver until they end.
func sampleOffCPU(t *testing.T, bounds *testutil.Bounds, variants []string, seconds int, change func(*customlabelsreceiver.Config)) ([]*offCPURun, *running) {
	runs := map[int64]*offCPURun{}
	var ordered []*offCPURun
	var early []hit // before the writers' numbers are known
	out := &sink{t: t, visit: func(b flatBatch) {
		if b.isOffCPU {
			early = append(early, b.hits...)
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 97
		c.ReportInterval = 500 * time.Millisecond
		*c.OffCPU.GetOrInsertDefault() = customlabelsreceiver.OffCPU{Threshold: 1}
		c.MaxBpfMapBytes = 256 << 20
		// Not those of all that a busy machine does.
		c.Targets.Include = []customlabelsreceiver.TargetSelector{{Executable: filepath.Join(testutil.BuildWriters(t), "writer-*")}}
		change(c)
	}, func(o *pipeline.Options) { o.OffCPU.RingBytes, o.Ring.UserShare = 32<<20, 1 })
	warmup := size(3, 3, 20) // until the receiver has met the writers
	var writers []*testutil.Writer
	for i, variant := range variants {
		run := &offCPURun{
			variant: variant, truth: filepath.Join(t.TempDir(), fmt.Sprintf("truth-%d", i)),
			total: map[way]time.Duration{}, absences: map[way]int{}, blocked: map[way]time.Duration{},
		}
		w := testutil.Start(t, variant, "blocks", "--seconds", fmt.Sprint(warmup+seconds), "--warmup-ms", fmt.Sprint(1000*warmup), "--truth", run.truth)
		run.pid = int64(w.PID)
		runs[run.pid] = run
		ordered = append(ordered, run)
		writers = append(writers, w)
	}
	for _, w := range writers {
		w.Wait(time.Duration(warmup+seconds+30) * time.Second)
	}
	r.stop()
	for i := range early {
		if run := runs[early[i].pid]; run != nil {
			run.take(t, &early[i])
		}
	}
	for _, run := range ordered {
		require.Empty(bounds, run.lacking, "%s: stacks without their function", run.variant)
	}
	return ordered, r
}

// TestOffCPU: threads that wait in several ways for known times. The time off the CPU
// by label set is what the threads themselves measured.
func TestOffCPU(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	// Of a total, where every absence is looked at. The truth is not exact, either: to the
	// CPU time of a thread that a timer wakes the kernel adds some of what it takes for a
	// CPU to come out of idling, which is longer where that is emulated.
	tolerance := testutil.Threshold(t, "tolerance of a total", 0.01, 0.05)
	seconds := size(12, 3, 8)
	variants := []string{"writer-v1-lib", "writer-ctx-exe"}
	compared := 0
	measure := func(name string, measurement func(*testing.T, *testutil.Bounds)) {
		t.Run(name, func(t *testing.T) { testutil.Measure(t, measurement) })
	}
	measure("every switch", func(t *testing.T, bounds *testutil.Bounds) {
		runs, r := sampleOffCPU(t, bounds, variants, seconds, func(*customlabelsreceiver.Config) {})
		account := r.switchAccount()
		requireClosed(t, account)
		for name, n := range account {
			if strings.HasPrefix(name, "dropped_") && name != "dropped_unfinished" {
				require.Zero(bounds, n, name)
			}
		}
		fmt.Printf("%-16s %-6s %-5s %9s %12s %12s %8s\n", "writer", "op", "turn", "absences", "measured", "true", "off by")
		for _, run := range runs {
			truth := run.measured(t)
			for _, set := range truth.Sets {
				w := way{set.Labels["op"], set.Labels["turn"]}
				off := run.total[w].Seconds()/set.OffCPU.Seconds() - 1
				fmt.Printf("%-16s %-6s %-5s %9d %12v %12v %+7.3f%%\n", run.variant, w.op, w.turn, run.absences[w],
					run.total[w].Round(time.Microsecond), set.OffCPU.Round(time.Microsecond), 100*off)
				require.NotZero(t, set.Blocks)
				require.Greater(bounds, run.absences[w], set.Blocks/2) // a lock may be free by the time it is asked for
				require.InDelta(bounds, 0, off, tolerance, "%s %v", run.variant, w)
			}
			compared += run.compared
		}
	})
	// What is drawn makes up for what is not.
	if testutil.LeftOut(t, "threshold and minimum") {
		return // the rest is arithmetic, the same on every kernel
	}
	measure("threshold", func(t *testing.T, bounds *testutil.Bounds) {
		const threshold = 0.25
		runs, r := sampleOffCPU(t, bounds, variants, seconds, func(c *customlabelsreceiver.Config) { c.OffCPU.Get().Threshold = threshold })
		account := r.switchAccount()
		requireClosed(t, account)
		var measured, truth, variance float64
		for _, run := range runs {
			for _, set := range run.measured(t).Sets {
				w := way{set.Labels["op"], set.Labels["turn"]}
				if w.op == "long" {
					continue // too few
				}
				measured += run.total[w].Seconds()
				truth += set.OffCPU.Seconds()
				each := set.OffCPU.Seconds() / float64(set.Blocks)
				variance += float64(set.Blocks) * each * each * (1 - threshold) / threshold
			}
		}
		sd := math.Sqrt(variance)
		fmt.Printf("threshold %v: %.2f s of %.2f s, %+.1f standard deviations (%.1f%%)\n",
			threshold, measured, truth, (measured-truth)/sd, 100*sd/truth)
		require.InDelta(bounds, truth, measured, 5*sd)
		user := account["hits"] - account["filtered_idle"] - account["filtered_kernel"] - account["filtered_own"]
		drawn := float64(user-account["filtered_not_drawn"]) / float64(user)
		require.InDelta(bounds, threshold, drawn, 5*math.Sqrt(threshold*(1-threshold)/float64(user)))
	})
	// The minimum leaves the shorter waits out and the longer ones untouched.
	measure("minimum", func(t *testing.T, bounds *testutil.Bounds) {
		const minimum = 8 * time.Millisecond
		runs, r := sampleOffCPU(t, bounds, variants[:1], seconds, func(c *customlabelsreceiver.Config) { c.OffCPU.Get().Minimum = minimum })
		account := r.switchAccount()
		requireClosed(t, account)
		require.NotZero(t, account["filtered_below_minimum"])
		for _, run := range runs {
			truth := run.measured(t)
			for _, set := range truth.Sets {
				w := way{set.Labels["op"], set.Labels["turn"]}
				if w.turn == "odd" {
					// Besides the wait itself the truth has short ones for a CPU.
					share := run.total[w].Seconds() / set.OffCPU.Seconds()
					require.Less(bounds, share, 1+tolerance, "%v", w)
					require.Greater(bounds, share, testutil.Threshold(t, "share of long waits", 0.9, 0.5), "%v", w)
				} else if w.op != "long" {
					require.Less(bounds, run.absences[w], set.Blocks/2, "%v", w)
				}
			}
		}
	})
	testutil.ReportLabelAssertions(t.Name(), compared)
}

// TestOffCPUStorm: more switches than can be recorded, and a ring buffer that holds
// few. The CPU samples do not suffer, and each switch is accounted for.
func TestOffCPUStorm(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	for range 2 {
		testutil.Start(t, "writer-v1-lib", "storm", "--threads", "8", "--seconds", "600")
	}
	out := &sink{t: t, visit: func(flatBatch) {}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 997
		c.ReportInterval = 200 * time.Millisecond
		*c.OffCPU.GetOrInsertDefault() = customlabelsreceiver.OffCPU{Threshold: 1}
		c.MaxMemoryBytes = slowConsumerMemory
	}, slowConsumer, func(o *pipeline.Options) {
		o.OffCPU.RingBytes = 64 << 10
		o.Ring.Bytes, o.Ring.UserShare = 32<<20, 1 // all writers are root's
	})
	time.Sleep(size(10*time.Second, 0, 0))
	assert.Eventually(t, func() bool {
		return r.metricOf(profileOffCPU, "dropped_samples", "reason")["ring_full"] > 0 && out.hasHits()
	}, 3*time.Minute, 50*time.Millisecond)
	require.GreaterOrEqual(t, r.metricOf(profileOffCPU, "pending_samples")[""], int64(0))
	dropped := r.metricOf(profileOffCPU, "dropped_samples", "reason")
	require.Equal(t, 12, len(dropped), "%v", slices.Collect(maps.Keys(dropped)))
	r.stop()

	cpu, switches := r.account(), r.switchAccount()
	fmt.Printf("%v\n", cpu)
	requireClosed(t, switches)
	require.NotZero(t, switches["emitted"])
	require.NotZero(t, switches["dropped_ring_full"], "the test did not reach the bound")
	_, received := out.received()
	require.EqualValues(t, received, cpu["emitted"]+switches["emitted"])

	require.Zero(t, cpu["pending"])
	require.NotZero(t, cpu["emitted"])
	require.Equal(t, cpu["hits"], cpu["emitted"]+cpu["filtered_idle"], "CPU samples were lost: %v", cpu)
}
