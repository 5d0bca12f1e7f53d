//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/test/bench/emitted"
	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

// unwindOutside is how many of a stack's frames are not those of the path: the C library's,
// main, and so on.
// Leaves differ by unwindWithin.
const unwindOutside, unwindWithin = 8, 3

// Goals are ratios: what we may take of what the peer does.
const (
	goalUnwindBPF    = 1. / 3
	goalUnwindCPU    = 0.4
	goalUnwindMemory = 0.4
	goalUnwindMaps   = 0.5
)

// goalUnwindFrameNs is what BPF may take for a further frame.
const goalUnwindFrameNs = 80

// The peer's stacks end below 150 frames; deeper ones do not compare.
const unwindShallow, unwindDeep = 10, 100

var unwindRates = testutil.Size([]deepRate{{20, 4}, {97, 4}, {997, 2}}, []deepRate{{97, 3}}, []deepRate{{97, 1}})

var unwindRounds = testutil.Size(10, 1, 1)

// TestBenchUnwind compares what samples of deep stacks cost with the OTel eBPF profiler's
// receiver: the programs are of C, -O2 without frame pointers, spin at a known depth on
// every CPU, and publish no labels. Both collectors run at once.
//
// Costs are those of some report intervals: the BPF time of each hit of any process, and
// the collector's CPU time for each sample that it emits. That both emit samples of the
// load, as deep as they should be, is asserted, and that we do not emit fewer.
func TestBenchUnwind(t *testing.T) {
	testutil.RequireBPF(t)
	path := filepath.Join(testutil.BuildUnwind(t), "c-untold")
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	defer stats.Close()
	run := paired.Start(t, rawDir, "unwind")

	b := &deepBench{t: t, counts: map[string]*deepCount{}}
	b.derive = func(figures paired.Figures) {
		shallow, deep := figures[unwindCase(unwindShallow)+": BPF µs"], figures[unwindCase(unwindDeep)+": BPF µs"]
		figures["C"+frameFigure] = 1e3 * (deep - shallow) / (unwindDeep - unwindShallow)
	}
	for _, depth := range []int{unwindShallow, unwindDeep} {
		b.add(deepCase{
			name: unwindCase(depth), depth: depth, within: unwindWithin,
			load:    startCopies(t, path, writerSeconds, "deep", fmt.Sprint(depth-unwindOutside)),
			depthOf: func(s emitted.Stack) int { return len(s.User()) },
		})
	}
	b.bare = measureBareProfilers(t, run)
	var claims []paired.Claim
	for _, rate := range unwindRates {
		series := b.rounds(run, rate, unwindRounds)
		claim := func(what, figure string, goal float64) {
			claims = append(claims, paired.Claim{
				What: fmt.Sprintf("%d Hz, %s", rate.hz, what), Values: series.Ratios(ours, peer, figure), Goal: goal,
			})
		}
		for _, c := range b.cases {
			at := c.name + ": "
			claim(at+"BPF time a sample", at+"BPF µs", goalUnwindBPF)
			claim(at+"CPU time a sample", at+"CPU µs", goalUnwindCPU)
			claim(at+"memory of the receiver", at+memoryFigure, goalUnwindMemory)
			claim(at+"memory with its BPF maps", at+withMapsFigure, goalUnwindMemory)
		}
		claim("BPF maps", "maps MiB", goalUnwindMaps)
		claims = append(claims, paired.Claim{
			What: fmt.Sprintf("%d Hz, BPF time a frame", rate.hz), Unit: "ns",
			Values: series.Values(ours, "C"+frameFigure), Goal: goalUnwindFrameNs,
		})
	}
	b.checkCounts(unwindRates)
	run.Judge(claims...)
}

func unwindCase(depth int) string { return fmt.Sprintf("%d frames", depth) }
