//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const (
	peerCollector = "../../build/peer/otelcol-ebpf-profiler"
	// peerConditions gives the peer what it insists on at its start.
	peerConditions = "../../build/peer/run"
	peerConfig     = `
receivers:
  profiling: {samples_per_second: %d}
exporters: {nop: }
service:
  pipelines: {profiles: {receivers: [profiling], exporters: [nop]}}
  telemetry: {metrics: {level: none}, logs: {encoding: json}}
`
)

const (
	unwindRounds = 2
	unwindStart  = 8 * time.Second // until a collector has read what it reads once
	unwindSettle = 3 * time.Second
	unwindTime   = 10 * time.Second // two of the intervals in which both report
	// unwindOutside is how many of a stack's frames are not those of the path: the C
	// library's, main, and so on.
	unwindOutside = 8
	// goalUnwind is what we may take of what the peer does.
	goalUnwind = 0.5
)

var (
	unwindRates  = []int{20, 97, 997}
	unwindDepths = []int{10, 100, 500}
)

// peerDepth: the peer's stacks end below 150 frames; deeper ones do not compare.
const peerDepth = 100

// An unwindSystem is a collector with a receiver that unwinds stacks.
type unwindSystem struct {
	name    string
	command []string
	config  func(hz int) string
	rates   []int
	deep    bool                        // has stacks of any depth
	bare    float64                     // resident bytes of the collector without the receiver
	costs   map[int]map[int]*unwindCost // by rate and depth
	maps    map[int][]float64           // by rate: bytes of each round
}

// An unwindCost is what a sample costs, by round, and the resident bytes of the collector.
type unwindCost struct {
	// Of times the lowest counts: what else runs on the machine only adds to them.
	bpfNs, cpuUs, memory []float64
	samples              uint64
}

// unwindSystems: ours, the peer, and ours without symbols, which the peer does not look
// up for native code.
func unwindSystems() []*unwindSystem {
	ours := func(more string) func(int) string {
		return func(hz int) string {
			return fmt.Sprintf(receiverConfig, fmt.Sprintf("samples_per_second: %d%s", hz, more))
		}
	}
	systems := []*unwindSystem{
		{name: "ours", command: []string{collectorPath}, config: ours(""), rates: unwindRates, deep: true},
		{
			name: "OTel profiler", command: []string{peerConditions, peerCollector}, rates: unwindRates,
			config: func(hz int) string { return fmt.Sprintf(peerConfig, hz) },
		},
		{name: "ours, no names", command: []string{collectorPath}, config: ours(", symbolize: none"), rates: []int{97}, deep: true},
	}
	for _, s := range systems {
		s.costs, s.maps = map[int]map[int]*unwindCost{}, map[int][]float64{}
	}
	return systems
}

// TestBenchUnwind compares what samples of deep stacks cost with the OTel eBPF
// profiler's receiver: the programs are of C, -O2 without frame pointers, spin at a
// known depth on every CPU, and publish no labels. Each round starts one collector
// after the other, so that both meet the machine in the same state.
func TestBenchUnwind(t *testing.T) {
	testutil.RequireBPF(t)
	path := filepath.Join(testutil.BuildUnwind(t), "c-untold")
	printMachine(t)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	defer stats.Close()

	loads := map[int]*load{}
	for _, depth := range unwindDepths {
		loads[depth] = startCopies(t, path, writerSeconds, "deep", fmt.Sprint(depth-unwindOutside))
		loads[depth].pause()
	}
	systems := unwindSystems()
	for _, s := range systems {
		c := startCommand(t, s.command, bareConfig)
		time.Sleep(unwindStart)
		s.bare = float64(readResidence(t, c.pid()).total)
		c.stop()
	}
	for _, hz := range unwindRates {
		for range unwindRounds {
			for _, s := range systems {
				if slices.Contains(s.rates, hz) {
					s.round(t, hz, loads)
				}
			}
		}
	}
	printUnwind(systems)
	printUnwindRatios(systems[0], systems[1])
	for _, hz := range unwindRates {
		assert.Greater(t, median(systems[0].costs[hz][100].bpfNs), median(systems[0].costs[hz][10].bpfNs),
			"a deeper stack must cost more, or it is not unwound")
		assert.Greater(t, median(systems[1].costs[hz][100].bpfNs), median(systems[1].costs[hz][10].bpfNs),
			"the peer does not unwind")
	}
}

// round measures one collector at one rate, with one load after the other.
func (s *unwindSystem) round(t *testing.T, hz int, loads map[int]*load) {
	c := startCommand(t, s.command, s.config(hz))
	programs := openSamplingPrograms(t, c.pid())
	defer programs.close()
	if s.costs[hz] == nil {
		s.costs[hz] = map[int]*unwindCost{}
	}
	settle := unwindStart
	for _, depth := range unwindDepths {
		cost := s.costs[hz][depth]
		if cost == nil {
			cost = &unwindCost{}
			s.costs[hz][depth] = cost
		}
		loads[depth].resume()
		time.Sleep(settle)
		settle = unwindSettle
		before, cpuBefore := programs.time(), cpuTime(t, c.pid())
		time.Sleep(unwindTime)
		took, cpu := programs.time().minus(before), cpuTime(t, c.pid())-cpuBefore
		loads[depth].pause()
		require.NotZero(t, took.runs)
		cost.samples += took.runs
		cost.bpfNs = append(cost.bpfNs, took.perRun())
		cost.cpuUs = append(cost.cpuUs, float64(cpu.Nanoseconds())/1e3/float64(took.runs))
		cost.memory = append(cost.memory, float64(readResidence(t, c.pid()).total))
	}
	s.maps[hz] = append(s.maps[hz], float64(mapBytes(t, c.pid())))
	c.stop()
}

func printUnwind(systems []*unwindSystem) {
	fmt.Printf("C, -O2 without frame pointers; the lowest of %d rounds of %v after %v, of memory the median\n", unwindRounds, unwindTime, unwindSettle)
	fmt.Printf("%-14s %5s %6s %9s %14s %11s %10s %11s %8s %8s\n", "", "Hz", "frames", "BPF ns", "lowest–highest", "ns a frame",
		"CPU µs", "range", "samples", "MiB")
	for _, hz := range unwindRates {
		for _, s := range systems {
			if !slices.Contains(s.rates, hz) {
				continue
			}
			for _, depth := range unwindDepths {
				c := s.costs[hz][depth]
				frames := fmt.Sprint(depth)
				if !s.deep && depth > peerDepth {
					frames = "<150"
				}
				perFrame := "-"
				if frames != "<150" {
					perFrame = fmt.Sprintf("%.0f", slices.Min(c.bpfNs)/float64(depth))
				}
				fmt.Printf("%-14s %5d %6s %9.0f %14s %11s %10.1f %11s %8d %8.1f\n", s.name, hz, frames, slices.Min(c.bpfNs),
					spread(c.bpfNs, "%.0f"), perFrame, slices.Min(c.cpuUs), spread(c.cpuUs, "%.1f"), c.samples, median(c.memory)/mib)
			}
		}
	}
	for _, hz := range unwindRates {
		for _, s := range systems {
			if slices.Contains(s.rates, hz) {
				fmt.Printf("%-14s %5d Hz: %.1f MiB of BPF maps; without the receiver %.1f MiB of memory\n", s.name, hz,
					median(s.maps[hz])/mib, s.bare/mib)
			}
		}
	}
}

// printUnwindRatios says what of the peer's costs ours are, where both have whole stacks.
func printUnwindRatios(ours, peer *unwindSystem) {
	line := func(what string, ratio float64) {
		met := "met"
		if ratio > goalUnwind {
			met = "MISSED"
		}
		fmt.Printf("%-44s %5.2f of the peer's; goal %.1f: %s\n", what, ratio, goalUnwind, met)
	}
	for _, hz := range unwindRates {
		for _, depth := range unwindDepths {
			if depth > peerDepth {
				continue
			}
			o, p := ours.costs[hz][depth], peer.costs[hz][depth]
			at := fmt.Sprintf("%d Hz, %d frames: ", hz, depth)
			line(at+"BPF time a sample", slices.Min(o.bpfNs)/slices.Min(p.bpfNs))
			line(at+"CPU time a sample", slices.Min(o.cpuUs)/slices.Min(p.cpuUs))
			line(at+"memory of the receiver", (median(o.memory)-ours.bare)/(median(p.memory)-peer.bare))
			fmt.Printf("%-44s %5.2f of the peer's\n", at+"memory of the collector", median(o.memory)/median(p.memory))
		}
		line(fmt.Sprintf("%d Hz: BPF maps", hz), median(ours.maps[hz])/median(peer.maps[hz]))
	}
}
