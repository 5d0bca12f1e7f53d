//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// What is asked of native programs.
const (
	goalWhole = 0.999
	goalWrong = 0
	// goalFalseAlarms is the chance that a program which keeps to goalWhole is found short of
	// it. Of a thousand samples one may be incomplete, and it is chance whether it is none or
	// two. Over all programs there are samples enough to do without.
	goalFalseAlarms = 1e-3

	// unwindReady is the longest until all there is to know of programs is known, unwindCounts the longest that
	// their samples count: a busy host may have rows of some file to make all the time.
	unwindReady  = 2 * time.Minute
	unwindCounts = 2 * time.Minute
	// unwindSeconds is the longest that programs run, with what some are given to compile.
	unwindSeconds = 600
	// unwindSettled polls in a row say that no file's rows are still to be made.
	unwindSettled = 5
	unwindPoll    = 50 * time.Millisecond
)

var (
	// unwindBegin is how long the receiver has for what runs already.
	unwindBegin = size(5*time.Second, 2*time.Second, 5*time.Second)
	// unwindEnough samples of each program end their run.
	unwindEnough = size(10_000, 800, 250)
	// unwindTogether programs run beside each other.
	unwindTogether = size(2, 6, 1)
	unwindRate     = size(1999, 1999, 199)
	unwindSamples  = size(2000, 150, 200) // of each program, at least
)

// TestUnwind: each program tells at any time what its stack is, in its labels; each
// sample's stack is compared with its own labels.
func TestUnwind(t *testing.T) {
	testutil.RequireBPF(t)
	specs := stackPrograms(t, testutil.BuildUnwind(t))
	testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) { measureUnwind(t, bounds, specs) })
}

// TestUnwindReturnProbes: functions for whose returns somebody waits, whose return addresses the kernel has replaced, have
// their callers by unwind rows, too.
func TestUnwindReturnProbes(t *testing.T) {
	testutil.RequireBPF(t)
	const enough = 200
	path := compileProgram(t, "../../testdata/unwind/calls.c", "-fomit-frame-pointer", "-fno-optimize-sibling-calls")
	for _, function := range []string{"probed", "probed_too"} {
		testutil.ProbeReturn(t, path, function)
	}
	cmd := exec.Command(path)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	want := []string{"innermost", "probed", "between", "probed_too", "outermost", "main"}
	var mu sync.Mutex
	var since uint64
	whole := 0
	r := startReceiver(t, &sink{t: t, visit: func(b flatBatch) {
		mu.Lock()
		defer mu.Unlock()
		for i := range b.hits {
			h := &b.hits[i]
			if h.pid != int64(cmd.Process.Pid) || h.functions[0] != want[0] {
				continue // among others, what the kernel does for the probes
			}
			good := len(h.functions) > len(want) && slices.Equal(h.functions[:len(want)], want)
			if since == 0 && good {
				since = h.timeUnixNano // the rows are there
			}
			if since != 0 && h.timeUnixNano >= since {
				assert.True(t, good, "%v", h.functions)
				whole++
			}
		}
	}}, func(c *customlabelsreceiver.Config) { c.SamplesPerSecond, c.ReportInterval = 997, time.Second })
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return whole >= enough
	}, unwindReady, unwindPoll)
	r.stop()
}

func measureUnwind(t *testing.T, bounds *testutil.Bounds, specs []stackSpec) {
	sink := newStackSink(t)
	r := startStackReceiver(t, sink)
	time.Sleep(unwindBegin)
	var programs []*stackProgram
	for group := range slices.Chunk(specs, unwindTogether) {
		programs = append(programs, runStackPrograms(t, r, sink, group)...)
	}
	r.stop()
	reportStacks(t, bounds, programs)
}

func startStackReceiver(t *testing.T, sink *stackSink) *running {
	return startReceiver(t, sink, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = unwindRate
		c.ReportInterval = time.Second
		c.MaxBpfMapBytes = 256 << 20
		c.MaxMemoryBytes = 2 << 30
	}, func(o *pipeline.Options) {
		o.Ring.Bytes, o.Batches.MaxBytes = 64<<20, 256<<20
		o.Batches.MaxPending = 64 // judging takes long where all is emulated
	})
}

// runStackPrograms runs programs beside each other until there are samples enough of each.
func runStackPrograms(t *testing.T, r *running, sink *stackSink, specs []stackSpec) (programs []*stackProgram) {
	var writers []*testutil.Writer
	for _, spec := range specs {
		p := &stackProgram{stackSpec: spec}
		w := testutil.StartPath(t, spec.command[0], append(slices.Clone(spec.command[1:]), fmt.Sprint(unwindSeconds))...)
		p.started = time.Now()
		sink.watch(w.PID, p)
		programs, writers = append(programs, p), append(writers, w)
	}
	for i, p := range programs {
		time.Sleep(time.Until(p.started.Add(p.compiling)))
		if p.compiled != nil {
			p.compiled(t, writers[i].PID)
		}
	}
	// What is needed to unwind a program is only made when it has been sampled.
	ends := time.Now().Add(unwindReady)
	until := func(done func() bool) {
		for !done() && time.Now().Before(ends) {
			time.Sleep(unwindPoll)
		}
	}
	until(func() bool {
		return sink.all(programs, func(p *stackProgram) bool { return p.limit != "" || !p.firstWhole.IsZero() })
	})
	settled := 0
	until(func() bool {
		if settled++; r.metric("background_waiting", "work")["unwind_rows"] > 0 {
			settled = 0
		}
		return settled == unwindSettled
	})
	sink.count(programs)
	ends = time.Now().Add(unwindCounts)
	until(func() bool {
		return sink.all(programs, func(p *stackProgram) bool { all := p.counted(); return all.samples >= unwindEnough })
	})
	for _, w := range writers {
		w.Kill()
	}
	return programs
}

// reportStacks prints a line for each program, and one for each of its cases where
// something is short of the goal.
func reportStacks(t *testing.T, bounds *testutil.Bounds, programs []*stackProgram) {
	fmt.Printf("%d samples a second on each CPU; they count when the rows of all files are there\n", unwindRate)
	fmt.Printf("%-16s %-12s %9s %10s %7s %14s\n", "program", "case", "samples", "complete", "wrong", "first complete")
	line := func(p *stackProgram, name string, n tally, first string) {
		fmt.Printf("%-16s %-12s %9d %9.3f%% %7d %14s\n", p.name, name, n.samples, 100*n.share(), n.wrong, first)
	}
	pooled, inVDSO := tally{}, 0
	for _, p := range programs {
		all := p.counted()
		inVDSO += p.inVDSO
		first := "never"
		if !p.firstWhole.IsZero() {
			first = p.firstWhole.Sub(p.started).Round(time.Millisecond).String()
		}
		line(p, "all", all, first)
		for _, name := range p.order {
			if c := p.cases[name]; name != "" && (c.wrong > 0 || c.share() < goalWhole) {
				line(p, name, *c, "")
			}
		}
		if p.untold && p.unlabelled.share() < goalWhole {
			line(p, "(untold)", p.unlabelled, "")
		}
		if p.installing > 0 {
			fmt.Printf("%-16s not counted: %d samples where libgcc was changing its own frames for those that catch an exception\n", p.name, p.installing)
		}
		if p.delivering > 0 {
			fmt.Printf("%-16s not counted: %d samples where the kernel was setting registers for a signal's handler\n", p.name, p.delivering)
		}
		if p.cut > 0 {
			fmt.Printf("%-16s not counted: %d samples of the runtime at work for a goroutine whose stack is missing, which they say\n", p.name, p.cut)
		}
		if p.partial > 0 {
			t.Logf("%s: %d incomplete, by half seconds since the start: %v", p.name, p.partial, p.partialAt)
		}
		for _, of := range slices.Sorted(maps.Keys(p.examples)) {
			t.Logf("%s: %s: %s", p.name, of, p.examples[of])
		}
		if p.limit != "" {
			fmt.Printf("%-16s not held to the goal: %s\n", p.name, p.limit)
			assert.NotZero(bounds, all.samples, p.name)
			continue
		}
		assert.GreaterOrEqual(bounds, all.samples, unwindSamples, p.name)
		assert.GreaterOrEqual(bounds, testutil.PoissonTail(all.samples-all.whole, float64(all.samples)*(1-goalWhole)), goalFalseAlarms, "%s: complete stacks", p.name)
		assert.Equal(t, goalWrong, all.wrong, "%s: wrong stacks", p.name)
		pooled.add(&all)
	}
	fmt.Printf("%-29s %9d %9.3f%% %7d\n", "all that are held to the goal", pooled.samples, 100*pooled.share(), pooled.wrong)
	assert.GreaterOrEqual(bounds, pooled.share(), goalWhole, "complete stacks")
	fmt.Printf("%-29s %9d\n", "of all, in the vDSO", inVDSO)
	if timeInVDSO(t) {
		assert.NotZero(bounds, inVDSO, "samples in the vDSO")
	}
}

// timeInVDSO reports whether the time is certainly read in the vDSO: with other clock sources that may take a system call.
func timeInVDSO(t *testing.T) bool {
	source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	require.NoError(t, err)
	return slices.Contains([]string{"tsc", "arch_sys_counter"}, strings.TrimSpace(string(source)))
}
