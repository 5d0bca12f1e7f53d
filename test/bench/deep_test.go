//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/test/bench/emitted"
	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

const (
	// deepFewer is by what share our samples may be fewer than our hits, and than the peer's
	// samples.
	deepFewer = 0.01
	// unwindDelay before a report, what has been sampled is in it.
	unwindDelay = 1500 * time.Millisecond
	bareSettle  = 3 * time.Second
)

// settleReports are emitted before the first case is measured: what a collector does at its start is no sample's.
var settleReports = testutil.Size(2, 0, 0)

// memoryFigure is the resident memory that a receiver adds to its collector; withMapsFigure
// has its BPF maps besides, which are the kernel's memory and count for its cgroup.
const memoryFigure, withMapsFigure = "receiver MiB", "with BPF maps MiB"

// wholeFigure is the share of a load's samples whose stacks are as deep as they should be;
// wholeAtLeafFigure that of samples whose depth is known.
const wholeFigure, wholeAtLeafFigure = "whole", "whole at the leaf"

// A deepCase is a load whose stacks are as deep as is known.
type deepCase struct {
	name string
	load *load
	// depth of its stacks, within which they may differ: leaves do.
	depth, within int
	// depthOf is how deep a stack of the load is, by what was emitted of it. Negative: it is
	// not known how deep it should be.
	depthOf func(emitted.Stack) int
}

// A deepRate is measured for as many of the intervals in which both report.
type deepRate struct{ hz, intervals int }

// A deepCount is what a collector has emitted of a load, in all rounds.
type deepCount struct {
	samples int
	cpu     time.Duration // that the load has run
	could   time.Duration // and could have run, with all CPUs for itself
	depths  []int
}

// deepBench compares what samples of deep stacks cost.
type deepBench struct {
	t      *testing.T
	cases  []deepCase
	bare   map[string]float64 // resident bytes of the collectors without a receiver
	counts map[string]*deepCount
	derive func(paired.Figures) // adds what follows from what is measured; may be nil
	// hits of all our collectors, and how many of them were not emitted
	hits, lost int64
}

// add has a load sampled in each round; it runs only while it is.
func (b *deepBench) add(c deepCase) {
	c.load.pause()
	b.cases = append(b.cases, c)
}

// rounds measures both collectors at a rate, at once, so many times.
func (b *deepBench) rounds(run *paired.Run, rate deepRate, n int) *paired.Series {
	name := fmt.Sprintf("%d Hz", rate.hz)
	series := run.Together(name, n, bothProfilers, func(order []string) map[string]paired.Figures {
		return b.measure(order, rate)
	})
	printSeries(name, series, b.figures(), bothProfilers...)
	return series
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

// measure starts both collectors and has them sample one load after the other, together.
func (b *deepBench) measure(order []string, rate deepRate) map[string]paired.Figures {
	sides := startSides(b.t, order, rate.hz, ebpf.PerfEvent)
	all := map[string]paired.Figures{}
	b.cases[0].load.resume()
	for _, s := range sides {
		all[s.subject] = paired.Figures{}
		for range settleReports {
			s.out.batch()
		}
	}
	for i := range b.cases {
		b.measureCase(&b.cases[i], sides, rate, all)
	}
	for _, s := range sides {
		figures := all[s.subject]
		figures["maps MiB"] = s.holds().maps
		if b.derive != nil {
			b.derive(figures)
		}
		if account := s.stop(); s.subject == ours {
			dropped, why := lost(account)
			require.Equal(b.t, account["hits"], account["emitted"]+account["filtered_idle"]+dropped, "each hit is accounted for:%s", why)
			b.hits, b.lost = b.hits+account["hits"], b.lost+dropped
		}
	}
	return all
}

// measureCase has both sides sample a load for some report intervals, and adds what it
// costs them to their figures: what they take, for what they emit meanwhile.
func (b *deepBench) measureCase(one *deepCase, sides []*side, rate deepRate, all map[string]paired.Figures) {
	t, l, at := b.t, one.load, one.name+": "
	l.resume()
	for _, s := range sides {
		s.out.awaitLoad(l)
	}
	awaitGap(t, sides)
	var before []spent
	for _, s := range sides {
		s.out.rest()
		before = append(before, s.spent())
	}
	start, loadBefore := time.Now(), l.cpuTime()
	time.Sleep(time.Duration(rate.intervals) * reportInterval)
	end, loadAfter := time.Now(), l.cpuTime()
	var samples [][]emitted.Sample
	for i, s := range sides {
		cost, figures := s.spent().minus(before[i]), all[s.subject]
		samples = append(samples, s.out.rest())
		require.NotEmpty(t, samples[i])
		require.NotZero(t, cost.bpf.runs)
		figures[at+"BPF µs"] = cost.bpf.perRun() / 1e3
		figures[at+"CPU µs"] = cost.cpu.Seconds() * 1e6 / float64(len(samples[i]))
		holds := s.holds()
		figures[at+memoryFigure] = holds.resident - b.bare[s.subject]
		figures[at+withMapsFigure] = holds.all - b.bare[s.subject]
		figures[at+"samples"] = float64(len(samples[i]))
		figures[at+"hits"] = float64(cost.bpf.runs)
	}
	l.pause()
	for i, s := range sides {
		n := b.count(rate.hz, one.name, s.subject)
		n.cpu += loadAfter - loadBefore
		n.could += end.Sub(start) * time.Duration(runtime.NumCPU())
		known, whole := 0, 0
		taken := n.samples
		for _, sample := range append(samples[i], s.out.batch()...) {
			if at := int64(sample.TimeUnixNano); !l.has(uint32(sample.PID)) || at < start.UnixNano() || at >= end.UnixNano() {
				continue
			}
			n.samples++
			if depth := one.depthOf(sample.Stack); depth >= 0 {
				n.depths = append(n.depths, depth)
				known++
				whole += count(depth >= one.depth-one.within && depth <= one.depth+one.within)
			}
		}
		all[s.subject][at+wholeFigure] = float64(whole) / float64(max(1, n.samples-taken))
		all[s.subject][at+wholeAtLeafFigure] = float64(whole) / float64(max(1, known))
	}
}

// figures are the names of what is measured, in the order of tables.
func (b *deepBench) figures() (names []string) {
	for _, c := range b.cases {
		for _, figure := range []string{"BPF µs", "CPU µs", memoryFigure, withMapsFigure, "samples", "hits", wholeFigure, wholeAtLeafFigure} {
			names = append(names, c.name+": "+figure)
		}
	}
	return append(names, "maps MiB")
}

func (b *deepBench) count(hz int, of, subject string) *deepCount {
	key := fmt.Sprint(hz, of, subject)
	if b.counts[key] == nil {
		b.counts[key] = &deepCount{}
	}
	return b.counts[key]
}

// checkCounts: both emit stacks of the depth that the load has, and we not fewer of them
// than the peer, by the time that the load has run.
func (b *deepBench) checkCounts(rates []deepRate) {
	fmt.Printf("ours: %d hits, of which %d were not emitted\n", b.hits, b.lost)
	if testutil.Full() {
		assert.LessOrEqual(b.t, float64(b.lost), deepFewer*float64(b.hits), "hits that were not emitted")
	}
	for _, rate := range rates {
		for _, c := range b.cases {
			var perSecond [2]float64
			chance := 0.0
			for i, subject := range bothProfilers {
				n := b.count(rate.hz, c.name, subject)
				what := fmt.Sprintf("%s, %d Hz, %s", subject, rate.hz, c.name)
				if !assert.NotZero(b.t, n.samples, "%s: samples of the load", what) {
					return
				}
				slices.Sort(n.depths)
				middle := n.depths[len(n.depths)/2]
				if subject == ours || c.within > 0 { // the peer may have no names
					assert.InDelta(b.t, c.depth, middle, float64(c.within), "%s: median depth of the emitted stacks", what)
				}
				perSecond[i] = float64(n.samples) / n.cpu.Seconds()
				chance += max(0, 1-n.cpu.Seconds()/n.could.Seconds()) / float64(n.samples)
				fmt.Printf("%-34s %7d samples of the load, %7.2f for each second that it ran; median depth %d\n", what, n.samples, perSecond[i], middle)
			}
			if !testutil.Full() {
				continue
			}
			// A load that does not have its CPUs for itself is hit by chance: three standard
			// deviations of the ratio of two such counts.
			assert.GreaterOrEqual(b.t, perSecond[0]/perSecond[1], 1-deepFewer-3*math.Sqrt(chance),
				"%d Hz, %s: samples of the load, of the peer's", rate.hz, c.name)
		}
	}
}
