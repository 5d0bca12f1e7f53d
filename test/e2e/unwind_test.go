//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
)

var (
	// unwindWarmUp is how long a program has run when its samples begin to count, if its first
	// whole stack is not later: what is needed to unwind a program is only made when it has
	// been sampled.
	unwindWarmUp = size(5*time.Second, time.Second, 8*time.Second)
	// unwindBegin is how long the receiver has for what runs already.
	unwindBegin = size(5*time.Second, 2*time.Second, 5*time.Second)
	// unwindTime is how long a program then runs, unwindEnough how many samples are enough
	// for it to end sooner; 0: none are.
	unwindTime   = size(6*time.Second, time.Minute, 12*time.Second)
	unwindEnough = size(0, 800, 0)
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

func measureUnwind(t *testing.T, bounds *testutil.Bounds, specs []stackSpec) {
	sink := newStackSink(t)
	stop := startStackReceiver(t, sink)
	time.Sleep(unwindBegin)
	var programs []*stackProgram
	for group := range slices.Chunk(specs, unwindTogether) {
		programs = append(programs, runStackPrograms(t, sink, group)...)
	}
	stop()
	reportStacks(t, bounds, programs)
}

func startStackReceiver(t *testing.T, sink *stackSink) (stop func()) {
	r := startReceiver(t, sink, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = unwindRate
		c.ReportInterval = time.Second
		c.MaxBpfMapBytes = 256 << 20
		c.MaxMemoryBytes = 2 << 30
	}, func(o *pipeline.Options) {
		o.Ring.Bytes, o.Batches.MaxBytes = 64<<20, 256<<20
		o.Batches.MaxPending = 64 // judging takes long where all is emulated
	})
	return r.stop
}

// runStackPrograms runs programs beside each other to their end.
func runStackPrograms(t *testing.T, sink *stackSink, specs []stackSpec) (programs []*stackProgram) {
	var running []*testutil.Writer
	for _, spec := range specs {
		p := &stackProgram{stackSpec: spec, warmUp: unwindWarmUp + spec.compiling}
		life := p.warmUp + unwindTime
		w := testutil.StartPath(t, spec.command[0], append(slices.Clone(spec.command[1:]), fmt.Sprint(life.Seconds()))...)
		p.started = time.Now()
		sink.watch(w.PID, p)
		programs, running = append(programs, p), append(running, w)
	}
	for i, p := range programs {
		if p.compiled != nil {
			time.Sleep(time.Until(p.started.Add(p.compiling)))
			p.compiled(t, running[i].PID)
		}
	}
	ends := time.Now().Add(unwindWarmUp + unwindTime)
	for unwindEnough > 0 && time.Now().Before(ends) && !sink.enough(programs) {
		time.Sleep(50 * time.Millisecond)
	}
	for _, w := range running {
		if unwindEnough > 0 {
			w.Kill()
		} else {
			w.Wait(2 * time.Minute)
		}
	}
	return programs
}

// reportStacks prints a line for each program, and one for each of its cases where
// something is short of the goal.
func reportStacks(t *testing.T, bounds *testutil.Bounds, programs []*stackProgram) {
	fmt.Printf("%d samples a second on each CPU; they count from %v after the start of a program\n", unwindRate, unwindWarmUp)
	fmt.Printf("%-16s %-12s %9s %10s %7s %14s\n", "program", "case", "samples", "complete", "wrong", "first complete")
	line := func(p *stackProgram, name string, n tally, first string) {
		fmt.Printf("%-16s %-12s %9d %9.3f%% %7d %14s\n", p.name, name, n.samples, 100*n.share(), n.wrong, first)
	}
	pooled := tally{}
	for _, p := range programs {
		all := p.counted()
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
		if p.partial > 0 {
			t.Logf("%s: %d incomplete, by half seconds since the start: %v", p.name, p.partial, p.partialAt)
		}
		for _, of := range slices.Sorted(maps.Keys(p.examples)) {
			t.Logf("%s: %s: %s", p.name, of, p.examples[of])
		}
		if p.limit != "" {
			fmt.Printf("%-16s not held to the goal: %s\n", p.name, p.limit)
			assert.NotZero(t, all.samples, p.name)
			continue
		}
		assert.GreaterOrEqual(bounds, all.samples, unwindSamples, p.name)
		assert.GreaterOrEqual(bounds, testutil.PoissonTail(all.samples-all.whole, float64(all.samples)*(1-goalWhole)), goalFalseAlarms, "%s: complete stacks", p.name)
		assert.Equal(t, goalWrong, all.wrong, "%s: wrong stacks", p.name)
		pooled.add(&all)
	}
	fmt.Printf("%-29s %9d %9.3f%% %7d\n", "all that are held to the goal", pooled.samples, 100*pooled.share(), pooled.wrong)
	assert.GreaterOrEqual(bounds, pooled.share(), goalWhole, "complete stacks")
}
