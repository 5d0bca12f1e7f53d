//go:build linux && (amd64 || arm64)

package bench

import (
	"testing"

	"github.com/cilium/ebpf"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

const (
	// goalStartup is what the receiver may add to the start of the collector, in seconds.
	goalStartup = 1
	// goalStartupPeer is what part of the peer's whole start ours may take.
	goalStartupPeer = 0.5

	startupRate = 20
)

// TestBenchStartup measures the time from the start of a collector until it is ready: its
// receiver then samples.
func TestBenchStartup(t *testing.T) {
	testutil.RequireBPF(t)
	run := paired.Start(t, rawDir, "startup")
	const bare, figure = "ours, without the receiver", "ready s"
	series := run.Rounds("start-up", testutil.Size(10, 1, 1), []string{bare, ours, peer}, func(subject string) paired.Figures {
		name, config := subject, bareConfig
		if subject == bare {
			name = ours
		} else {
			config = profilers()[name].config(startupRate)
		}
		c := startCommand(t, profilers()[name].command, config)
		if subject != bare {
			openPrograms(t, c.pid(), ebpf.PerfEvent).close() // it is ready: they are there
		}
		c.stop()
		return paired.Figures{figure: c.startup.Seconds()}
	})
	printSeries("time until ready", series, []string{figure}, bare, ours, peer)
	run.Judge(
		paired.Claim{What: "start-up that the receiver adds", Unit: "s", Values: series.Differences(ours, bare, figure), Goal: goalStartup},
		paired.Claim{What: "start-up, of the peer's", Values: series.Ratios(ours, peer, figure), Goal: goalStartupPeer},
	)
}
