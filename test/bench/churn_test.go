//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/test/bench/emitted"
	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

// Goals are ratios: what we may take of what the peer does.
const (
	goalChurnCPU    = 1
	goalChurnMemory = 0.5
)

// churnRate in Hz is both receivers' default.
var churnRate = testutil.Size(20, 97, 97)

var churnRounds = testutil.Size(16, 1, 1)

// A churnCount is what a collector has emitted of a churn's processes, in all rounds.
type churnCount struct {
	samples, whole int
	kernel         int           // samples without a frame of the program: it begins, or ends
	cpu            time.Duration // of the processes
}

// churnBench compares what it costs that processes come and go.
type churnBench struct {
	t      *testing.T
	churns []*churn
	roots  roots
	bare   map[string]float64
	counts map[string]map[string]*churnCount // by churn and subject
}

// TestBenchChurn compares with the OTel eBPF profiler's receiver what a host costs on
// which processes come and go: compilers, short programs, containers of one image. Both
// collectors run at once and see all of them in turn.
//
// The CPU time counts from the start of a churn until what it has caused is reported: that
// of all threads of the collector, and that of its BPF programs, which run in others'
// time. A stack is whole if its outermost frame lies where the program's own code begins,
// by address: in the entry of the executable or the dynamic loader, or in a function of
// Go's runtime that has no caller.
func TestBenchChurn(t *testing.T) {
	testutil.RequireBPF(t)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	defer stats.Close()
	run := paired.Start(t, rawDir, "churn")

	b := &churnBench{t: t, counts: map[string]map[string]*churnCount{}}
	b.churns, b.roots = prepareChurns(t)
	b.bare = measureBareProfilers(t, run)
	series := run.Together("churn", churnRounds, bothProfilers, b.measure)
	var figures []string
	var claims []paired.Claim
	for _, c := range b.churns {
		claim := func(what string, goal float64) {
			claims = append(claims, paired.Claim{What: c.name + ": " + what, Values: series.Ratios(ours, peer, c.name+": "+what), Goal: goal})
		}
		claim(c.cpuFigure(), goalChurnCPU)
		claim(memoryFigure, goalChurnMemory)
		claim(withMapsFigure, goalChurnMemory)
		for _, what := range []string{"collector ms", "BPF ms", c.cpuFigure(), memoryFigure, withMapsFigure} {
			figures = append(figures, c.name+": "+what)
		}
	}
	printSeries(fmt.Sprintf("%d Hz", churnRate), series, figures, bothProfilers...)
	b.checkCounts()
	run.Judge(claims...)
}

// cpuFigure is of the CPU time by what was done.
func (c *churn) cpuFigure() string { return "CPU ms " + c.unit }

// measure has both collectors see all churns.
func (b *churnBench) measure(order []string) map[string]paired.Figures {
	sides := startSides(b.t, order, churnRate)
	all := map[string]paired.Figures{}
	for _, s := range sides {
		s.out.batch() // it has read what it reads at its start
		all[s.subject] = paired.Figures{}
	}
	for _, churn := range b.churns {
		var before []spent
		for _, s := range sides {
			before = append(before, s.spent())
		}
		done := churn.run(b.t)
		time.Sleep(reportInterval + unwindDelay)
		for i, s := range sides {
			cost := s.spent().minus(before[i])
			figure := func(name string, value float64) { all[s.subject][churn.name+": "+name] = value }
			figure("collector ms", 1e3*cost.cpu.Seconds())
			figure("BPF ms", 1e3*cost.bpf.total.Seconds())
			figure(churn.cpuFigure(), 1e3*(cost.cpu+cost.bpf.total).Seconds()/float64(done.units))
			figure("units", float64(done.units))
			holds := s.holds()
			figure(memoryFigure, holds.resident-b.bare[s.subject])
			figure(withMapsFigure, holds.all-b.bare[s.subject])
		}
		for _, s := range sides {
			b.add(churn, s.subject, done, s.out.batch())
		}
	}
	for _, s := range sides {
		s.stop()
	}
	return all
}

// add adds the samples of a churn's processes.
func (b *churnBench) add(c *churn, subject string, done churned, samples []emitted.Sample) {
	if b.counts[c.name] == nil {
		b.counts[c.name] = map[string]*churnCount{ours: {}, peer: {}}
	}
	n := b.counts[c.name][subject]
	n.cpu += done.cpu
	for i := range samples {
		if strings.HasPrefix(samples[i].Attributes["thread.name"], churnPrefix) {
			n.samples++
			n.kernel += count(len(samples[i].Stack.User()) == 0)
			n.whole += count(b.roots.whole(samples[i].Stack))
		}
	}
}

// checkCounts prints how much of the time that the processes ran is in samples, and in
// whole ones.
func (b *churnBench) checkCounts() {
	fmt.Printf("%-28s %-14s %10s %10s %12s %16s %16s\n", "of the processes' CPU time", "", "CPU s", "samples",
		"in samples", "in whole stacks", "in kernel only")
	for _, subject := range bothProfilers {
		all := &churnCount{}
		for _, c := range b.churns {
			n := b.counts[c.name][subject]
			of := n.cpu.Seconds() * float64(churnRate) / 100
			fmt.Printf("%-28s %-14s %10.1f %10d %11.1f%% %15.1f%% %15.1f%%\n", c.name, subject, n.cpu.Seconds(), n.samples,
				float64(n.samples)/of, float64(n.whole)/of, float64(n.kernel)/of)
			all.samples, all.whole = all.samples+n.samples, all.whole+n.whole
		}
		assert.NotZero(b.t, all.samples, "%s: samples of processes that come and go", subject)
		assert.NotZero(b.t, all.whole, "%s: whole stacks of processes that come and go", subject)
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
