//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

// Goals: in percent of one CPU, and as ratios of what the peer takes.
const (
	goalIdleCPU      = 0.1
	goalIdlePeerCPU  = 1
	goalIdlePeerSize = 0.5
)

var (
	idleHostProcesses = testutil.Size(2000, 50, 50)
	idleRounds        = testutil.Size(8, 1, 1)
	// idleSettle is the time in which what the host runs is read.
	idleSettle = testutil.Size(25*time.Second, time.Second, 5*time.Second)
	// idleWindow holds one periodic look at all processes (RescanInterval), and as many reports of both.
	idleWindow = testutil.Size(30*time.Second, 2*time.Second, 10*time.Second)
)

// TestBenchIdle compares with the OTel eBPF profiler's receiver what a host costs on which
// many processes run and do nothing. One collector runs after the other: beside another one, a host is not
// idle. The CPU time is that of all threads of the collector; BPF programs run only for its own samples.
func TestBenchIdle(t *testing.T) {
	testutil.RequireBPF(t)
	run := paired.Start(t, rawDir, "idle")
	bare := measureBareProfilers(t, run)
	startSleepers(t, buildSleepers(t), idleHostProcesses)

	const cpuFigure = "CPU percent of one"
	series := run.Rounds("idle", idleRounds, bothProfilers, func(subject string) paired.Figures {
		s := startSides(t, []string{subject}, churnRate)[0]
		defer s.stop()
		time.Sleep(idleSettle)
		before, began := s.spent(), time.Now()
		time.Sleep(idleWindow)
		cost, took, holds := s.spent().minus(before), time.Since(began), s.holds()
		return paired.Figures{
			cpuFigure:      100 * cost.cpu.Seconds() / took.Seconds(),
			memoryFigure:   holds.resident - bare[subject],
			withMapsFigure: holds.all - bare[subject],
		}
	})
	printSeries(fmt.Sprintf("%d idle processes", idleHostProcesses), series, []string{cpuFigure, memoryFigure, withMapsFigure}, bothProfilers...)
	ratio := func(figure string, goal float64) paired.Claim {
		return paired.Claim{What: figure, Values: series.Ratios(ours, peer, figure), Goal: goal}
	}
	run.Judge(
		paired.Claim{What: "CPU", Unit: "% of one", Values: series.Values(ours, cpuFigure), Goal: goalIdleCPU},
		ratio(cpuFigure, goalIdlePeerCPU), ratio(memoryFigure, goalIdlePeerSize), ratio(withMapsFigure, goalIdlePeerSize),
	)
}
