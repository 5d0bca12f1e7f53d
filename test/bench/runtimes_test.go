//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/test/bench/emitted"
	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

// Goals are ratios: what we may take of what the peer does, and what share of samples with the
// whole named stack it may have, of ours.
const (
	goalRuntimesBPF    = 0.5
	goalRuntimesCPU    = 0.5
	goalRuntimesMemory = 0.5
	goalRuntimesWhole  = 1
)

// Of a shallow and of a deep stack of the same program, what a frame costs is the difference.
const runtimesShallow, runtimesDeep = 10, 60

// runtimesWarm is how long a program has run before it is measured: it is compiled meanwhile.
var runtimesWarm = testutil.Size(10*time.Second, 2*time.Second, 2*time.Second)

// runtimesRounds are more than ten, of which most intervals held the goal.
var runtimesRounds = testutil.Size(16, 1, 1)

var runtimesRate = testutil.Size(deepRate{97, 4}, deepRate{97, 3}, deepRate{97, 1})

// TestBenchRuntimes compares what samples of Python, Java and JavaScript cost with the OTel
// eBPF profiler's receiver, and how many of them have the whole stack with the functions of
// the language: programs that spin at a known depth on every CPU, in the runtimes that this
// machine has. Both collectors run at once.
//
// A stack is expected to be whole while the program is at its end: on the way there it is
// less deep.
func TestBenchRuntimes(t *testing.T) {
	testutil.RequireBPF(t)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	defer stats.Close()
	classes := t.TempDir()
	out, err := exec.Command("javac", "--release", "17", "-d", classes, "../../testdata/runtimes/Deep.java").CombinedOutput()
	require.NoError(t, err, "%s", out)
	commands := []struct {
		name    string
		command []string
	}{
		{"CPython", []string{"python3", "../../testdata/runtimes/deep.py"}},
		{"HotSpot", []string{"java", "-cp", classes, "Deep"}},
		{"V8", []string{"node", "../../testdata/runtimes/deep.js"}},
	}
	run := paired.Start(t, rawDir, "runtimes")

	b := &deepBench{t: t, counts: map[string]*deepCount{}}
	b.derive = func(figures paired.Figures) {
		for _, c := range commands {
			shallow, deep := figures[runtimesCase(c.name, runtimesShallow)+": BPF µs"], figures[runtimesCase(c.name, runtimesDeep)+": BPF µs"]
			figures[c.name+frameFigure] = 1e3 * (deep - shallow) / (runtimesDeep - runtimesShallow)
		}
	}
	for _, c := range commands {
		path, err := exec.LookPath(c.command[0])
		require.NoError(t, err)
		for _, depth := range []int{runtimesShallow, runtimesDeep} {
			l := startCopies(t, path, append(c.command[1:], fmt.Sprint(depth))...)
			time.Sleep(runtimesWarm)
			b.add(deepCase{name: runtimesCase(c.name, depth), load: l, depth: depth, depthOf: namedDepth})
		}
	}
	b.bare = measureBareProfilers(t, run)
	series := b.rounds(run, runtimesRate, runtimesRounds)
	var claims []paired.Claim
	claim := func(what, of, to, figure string, goal float64) {
		claims = append(claims, paired.Claim{What: what, Values: series.Ratios(of, to, figure), Goal: goal})
	}
	for _, c := range commands {
		claim(c.name+", BPF time a frame", ours, peer, c.name+frameFigure, goalRuntimesBPF)
	}
	for _, c := range b.cases {
		at := c.name + ": "
		claim(at+"BPF time a sample", ours, peer, at+"BPF µs", goalRuntimesBPF)
		claim(at+"CPU time a sample", ours, peer, at+"CPU µs", goalRuntimesCPU)
		claim(at+"memory of the receiver", ours, peer, at+memoryFigure, goalRuntimesMemory)
		claim(at+"memory with its BPF maps", ours, peer, at+withMapsFigure, goalRuntimesMemory)
		claim(at+"whole named stacks, the peer's of ours", peer, ours, at+wholeAtLeafFigure, goalRuntimesWhole)
	}
	b.checkCounts([]deepRate{runtimesRate})
	run.Judge(claims...)
}

// frameFigure is what a further frame costs.
const frameFigure = ": BPF ns a frame"

func runtimesCase(name string, depth int) string { return fmt.Sprintf("%s, %d frames", name, depth) }

// namedDepth counts the frames that are the program's function which calls itself, between
// the function that it ends with and that which calls it first. It is negative if the
// program is on its way to the end, or from there.
func namedDepth(s emitted.Stack) (depth int) {
	leaf := false
	for _, f := range s.User() {
		for _, name := range append(f.Inlined, f.Function) {
			switch {
			case strings.Contains(name, "w_leaf"):
				leaf = true
			case strings.Contains(name, "w_deep"):
				depth++
			case strings.Contains(name, "w_turns") && leaf:
				return depth
			case strings.Contains(name, "w_turns"):
				return -1
			}
		}
	}
	return 0
}
