//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

const (
	// unwindOutside is how many of a stack's frames are not those of the path: the C
	// library's, main, and so on. Leaves differ by unwindWithin.
	unwindOutside, unwindWithin = 8, 3
	// unwindFewer is by what share our samples may be fewer than our hits, and than the peer's
	// samples.
	unwindFewer = 0.01
	// unwindDelay before a report, what has been sampled is in it.
	unwindDelay = 1500 * time.Millisecond
	bareSettle  = 3 * time.Second
)

// Goals are ratios: what we may take of what the peer does.
const (
	goalUnwindBPF    = 0.5
	goalUnwindCPU    = 0.5
	goalUnwindMemory = 0.5
	goalUnwindMaps   = 0.5
)

// The peer's stacks end below 150 frames; deeper ones do not compare.
var unwindDepths = []int{10, 100}

// A unwindRate is measured for as many of the intervals in which both report.
type unwindRate struct{ hz, intervals int }

var unwindRates = testutil.Size([]unwindRate{{20, 2}, {97, 1}, {997, 1}}, []unwindRate{{97, 3}}, []unwindRate{{97, 1}})

// An unwindCount is what a collector has emitted of a load, in all rounds.
type unwindCount struct {
	samples int
	cpu     time.Duration // that the load has run
	could   time.Duration // and could have run, with all CPUs for itself
	depths  []int         // of user frames
}

// unwindBench compares what samples of deep stacks cost.
type unwindBench struct {
	t      *testing.T
	loads  map[int]*load      // by depth
	bare   map[string]float64 // resident bytes of the collectors without a receiver
	counts map[string]*unwindCount
	// hits of all our collectors, and how many of them were not emitted
	hits, lost int64
}

// TestBenchUnwind compares what samples of deep stacks cost with the OTel eBPF profiler's
// receiver: the programs are of C, -O2 without frame pointers, spin at a known depth on
// every CPU, and publish no labels. A round starts one collector after the other.
//
// Costs are those from one batch to the next: the BPF time of each hit of any process, and
// the collector's CPU time for each sample that it emits. That both emit samples of the
// load, as deep as they should be, is asserted, and that we do not emit fewer.
func TestBenchUnwind(t *testing.T) {
	testutil.RequireBPF(t)
	path := filepath.Join(testutil.BuildUnwind(t), "c-untold")
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	defer stats.Close()
	run := paired.Start(t, rawDir, "unwind")

	b := &unwindBench{t: t, loads: map[int]*load{}, counts: map[string]*unwindCount{}}
	for _, depth := range unwindDepths {
		b.loads[depth] = startCopies(t, path, writerSeconds, "deep", fmt.Sprint(depth-unwindOutside))
		b.loads[depth].pause()
	}
	b.bare = measureBareProfilers(t, run)
	var claims []paired.Claim
	for _, rate := range unwindRates {
		name := fmt.Sprintf("%d Hz", rate.hz)
		series := run.Rounds(name, testutil.Size(10, 1, 1), bothProfilers, func(subject string) paired.Figures {
			return b.measure(subject, rate)
		})
		printSeries(name, series, b.figures(), bothProfilers...)
		claim := func(what, figure string, goal float64) {
			claims = append(claims, paired.Claim{What: name + ", " + what, Values: series.Ratios(ours, peer, figure), Goal: goal})
		}
		for _, depth := range unwindDepths {
			at := fmt.Sprintf("%d frames: ", depth)
			claim(at+"BPF time a sample", at+"BPF µs", goalUnwindBPF)
			claim(at+"CPU time a sample", at+"CPU µs", goalUnwindCPU)
			claim(at+"memory of the receiver", at+"receiver MiB", goalUnwindMemory)
		}
		claim("BPF maps", "maps MiB", goalUnwindMaps)
	}
	b.checkCounts()
	run.Judge(claims...)
}

// measureBareProfilers measures the collectors without their receivers.
func measureBareProfilers(t *testing.T, run *paired.Run) map[string]float64 {
	const figure = "bare MiB"
	series := run.Rounds("without the receivers", testutil.Size(3, 1, 1), bothProfilers, func(subject string) paired.Figures {
		c := startCommand(t, profilers()[subject].command, bareConfig)
		defer c.stop()
		time.Sleep(bareSettle)
		return paired.Figures{figure: float64(readResidence(t, c.pid()).total) / mib}
	})
	printSeries("collectors without receivers", series, []string{figure}, bothProfilers...)
	bare := map[string]float64{}
	for _, subject := range bothProfilers {
		bare[subject] = paired.Of(series.Values(subject, figure)).Median
	}
	return bare
}

// measure starts a collector and has it sample one load after the other.
func (b *unwindBench) measure(subject string, rate unwindRate) paired.Figures {
	t, p := b.t, profilers()[subject]
	c := startCommand(t, p.command, p.config(rate.hz))
	programs := openPrograms(t, c.pid(), ebpf.PerfEvent)
	defer programs.close()
	out := &emission{c: c}
	figures := paired.Figures{}
	for _, depth := range unwindDepths {
		l, at := b.loads[depth], fmt.Sprintf("%d frames: ", depth)
		l.resume()
		out.awaitLoad(l)
		bpfBefore, cpuBefore := programs.time(), cpuTime(t, c.pid())
		count := b.count(rate.hz, depth, subject)
		start, loadBefore := time.Now(), l.cpuTime()
		time.Sleep(time.Duration(rate.intervals)*reportInterval - unwindDelay)
		end, loadAfter := time.Now(), l.cpuTime()
		samples := 0
		for range rate.intervals {
			for _, s := range out.batch() {
				samples++
				if at := int64(s.TimeUnixNano); l.has(uint32(s.PID)) && at >= start.UnixNano() && at < end.UnixNano() {
					count.samples++
					count.depths = append(count.depths, len(s.Stack.User()))
				}
			}
		}
		bpf, cpu := programs.time().minus(bpfBefore), cpuTime(t, c.pid())-cpuBefore
		count.cpu += loadAfter - loadBefore
		count.could += end.Sub(start) * time.Duration(runtime.NumCPU())
		resident := float64(readResidence(t, c.pid()).total) / mib
		l.pause()
		require.NotZero(t, samples)
		require.NotZero(t, bpf.runs)
		figures[at+"BPF µs"] = bpf.perRun() / 1e3
		figures[at+"CPU µs"] = cpu.Seconds() * 1e6 / float64(samples)
		figures[at+"receiver MiB"] = resident - b.bare[subject]
		figures[at+"samples"] = float64(samples)
		figures[at+"hits"] = float64(bpf.runs)
	}
	figures["maps MiB"] = float64(mapBytes(t, c.pid())) / mib
	if account := c.stop(); subject == ours {
		dropped, why := lost(account)
		require.Equal(t, account["hits"], account["emitted"]+account["filtered_idle"]+dropped, "each hit is accounted for:%s", why)
		b.hits, b.lost = b.hits+account["hits"], b.lost+dropped
	}
	return figures
}

// figures are the names of what is measured, in the order of tables.
func (b *unwindBench) figures() (names []string) {
	for _, depth := range unwindDepths {
		for _, figure := range []string{"BPF µs", "CPU µs", "receiver MiB", "samples", "hits"} {
			names = append(names, fmt.Sprintf("%d frames: %s", depth, figure))
		}
	}
	return append(names, "maps MiB")
}

func (b *unwindBench) count(hz, depth int, subject string) *unwindCount {
	key := fmt.Sprint(hz, depth, subject)
	if b.counts[key] == nil {
		b.counts[key] = &unwindCount{}
	}
	return b.counts[key]
}

// checkCounts: both emit stacks of the depth that the load has, and we not fewer of them
// than the peer, by the time that the load has run.
func (b *unwindBench) checkCounts() {
	fmt.Printf("ours: %d hits, of which %d were not emitted\n", b.hits, b.lost)
	if testutil.Full() {
		assert.LessOrEqual(b.t, float64(b.lost), unwindFewer*float64(b.hits), "hits that were not emitted")
	}
	for _, rate := range unwindRates {
		for _, depth := range unwindDepths {
			var perSecond [2]float64
			chance := 0.0
			for i, subject := range bothProfilers {
				n := b.count(rate.hz, depth, subject)
				what := fmt.Sprintf("%s, %d Hz, %d frames", subject, rate.hz, depth)
				if !assert.NotZero(b.t, n.samples, "%s: samples of the load", what) {
					return
				}
				slices.Sort(n.depths)
				middle := n.depths[len(n.depths)/2]
				assert.InDelta(b.t, depth, middle, unwindWithin, "%s: median of the emitted stacks' user frames", what)
				perSecond[i] = float64(n.samples) / n.cpu.Seconds()
				chance += max(0, 1-n.cpu.Seconds()/n.could.Seconds()) / float64(n.samples)
				fmt.Printf("%-34s %7d samples of the load, %7.2f for each second that it ran; median depth %d\n", what, n.samples, perSecond[i], middle)
			}
			if !testutil.Full() {
				continue
			}
			// A load that does not have its CPUs for itself is hit by chance: three standard
			// deviations of the ratio of two such counts.
			assert.GreaterOrEqual(b.t, perSecond[0]/perSecond[1], 1-unwindFewer-3*math.Sqrt(chance),
				"%d Hz, %d frames: samples of the load, of the peer's", rate.hz, depth)
		}
	}
}
