//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
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

// What is asked of native programs.
const (
	goalWhole = 0.999
	goalWrong = 0
)

var (
	// unwindWarmUp is how long a program has run when its samples begin to count: what is
	// needed to unwind a program is only made when it has been sampled.
	unwindWarmUp  = pick(2*time.Second, 8*time.Second)
	unwindTime    = pick(6*time.Second, 20*time.Second) // for each pair of programs
	unwindRate    = pick(1999, 199)
	unwindSamples = pick(2000, 200) // of each program, at least
)

// nativeRoots are the functions that stacks of native programs begin with: of the main
// thread, and of others as the C libraries call them.
var nativeRoots = []string{"_start", "__start", "clone", "__clone", "clone3", "__clone3", "thread_start", "start"}

// TestUnwind: each program tells at any time what its stack is, in its labels; each
// sample's stack is compared with its own labels.
func TestUnwind(t *testing.T) {
	testutil.RequireBPF(t)
	dir := testutil.BuildUnwind(t)
	sink := newStackSink(t)
	stop := startStackReceiver(t, sink)
	var programs []*stackProgram
	for _, path := range nativePrograms(t, dir) {
		programs = append(programs, runStackProgram(t, sink, path))
	}
	stop()
	reportStacks(t, programs)
}

// nativePrograms lists the built ones that tell their stacks.
func nativePrograms(t *testing.T, dir string) (paths []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), "lib") && !strings.HasSuffix(e.Name(), "-untold") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	require.NotEmpty(t, paths)
	slices.Sort(paths)
	return paths
}

func startStackReceiver(t *testing.T, sink *stackSink) (stop func()) {
	r := startReceiver(t, sink, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = unwindRate
		c.ReportInterval = time.Second
		c.RingBufferBytes = 64 << 20
		c.MaxBatchBytes = 256 << 20
	})
	return r.stop
}

// runStackProgram runs a program to its end.
func runStackProgram(t *testing.T, sink *stackSink, path string) *stackProgram {
	p := &stackProgram{name: filepath.Base(path), rules: stackRules{entries: nativeRoots}, goal: true}
	if p.name == "c-stripped" {
		p.rules.nameless, p.rules.file = "w_J", path // the part of it that is hardly ever run
	}
	seconds := (unwindWarmUp + unwindTime).Seconds()
	w := testutil.StartPath(t, path, fmt.Sprint(seconds))
	p.started = time.Now()
	sink.watch(w.PID, p)
	w.Wait(unwindWarmUp + unwindTime + 30*time.Second)
	return p
}

// reportStacks prints a line for each program, and one for each of its cases where
// something is short of the goal.
func reportStacks(t *testing.T, programs []*stackProgram) {
	fmt.Printf("%d samples a second on each CPU; they count from %v after the start of a program\n", unwindRate, unwindWarmUp)
	fmt.Printf("%-16s %-12s %9s %10s %7s %14s\n", "program", "case", "samples", "complete", "wrong", "first complete")
	line := func(p *stackProgram, name string, n tally, first string) {
		fmt.Printf("%-16s %-12s %9d %9.3f%% %7d %14s\n", p.name, name, n.samples, 100*n.share(), n.wrong, first)
	}
	for _, p := range programs {
		all := p.unlabelled
		for _, c := range p.cases {
			all.add(c)
		}
		first := "never"
		if !p.firstWhole.IsZero() {
			first = p.firstWhole.Sub(p.started).Round(time.Millisecond).String()
		}
		line(p, "all", all, first)
		for _, name := range p.order {
			if c := p.cases[name]; c.wrong > 0 || c.share() < goalWhole {
				line(p, name, *c, "")
			}
		}
		if p.unlabelled.share() < goalWhole {
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
		if !p.goal {
			continue
		}
		assert.GreaterOrEqual(t, all.samples, unwindSamples, p.name)
		assert.GreaterOrEqual(t, all.share(), goalWhole, "%s: complete stacks", p.name)
		assert.Equal(t, goalWrong, all.wrong, "%s: wrong stacks", p.name)
	}
}
