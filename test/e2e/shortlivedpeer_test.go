//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
	"github.com/customlabels/otelcol-customlabels/test/bench/emitted"
)

const (
	// What make bench-short-lived builds: the OTel eBPF profiler's receiver in a collector,
	// and what gives it the conditions that it insists on.
	peerProgram    = "../../build/peer/otelcol-ebpf-profiler"
	peerConditions = "../../build/peer/run"
	peerConfig     = `
receivers:
  profiling: {samples_per_second: %d}
exporters: {profiles_file: }
service:
  pipelines: {profiles: {receivers: [profiling], exporters: [profiles_file]}}
  telemetry: {metrics: {level: none}}
`
	// peerStart is how long it takes to look at the processes that are there, peerDelay how
	// long its samples take at most.
	peerStart, peerDelay = 10 * time.Second, 10 * time.Second
	// briefFrames is the least that a whole stack of a short-lived writer has: its own four
	// functions, two of the C library, and the entry.
	briefFrames = 7
)

// peerSamples are what the peer has emitted, by PID.
type peerSamples map[int64][]emitted.Sample

// of returns the samples of a process. The peer names no functions of native programs; so
// a stack counts as whole when it is as long as one.
func (s peerSamples) of(l *life) (samples []briefSample) {
	for _, h := range s[int64(l.pid)] {
		sample := briefSample{timeUnixNano: h.TimeUnixNano, whole: len(h.Stack.User()) >= briefFrames}
		for _, value := range h.Attributes {
			if value == l.value {
				sample.value = value
			}
		}
		samples = append(samples, sample)
	}
	return samples
}

// TestShortLivedPeer runs the same processes under both receivers at once, and prints what
// each has of them. Both must have something of them.
func TestShortLivedPeer(t *testing.T) {
	testutil.RequireBPF(t)
	dir := testutil.BuildWriters(t)
	for _, hz := range testutil.Size([]int{97, 997}, []int{997}, []int{997}) {
		config, profiles := filepath.Join(t.TempDir(), "config.yaml"), filepath.Join(t.TempDir(), "profiles")
		require.NoError(t, os.WriteFile(config, []byte(fmt.Sprintf(peerConfig, hz)), 0o600))
		c := startChild(t, []string{emitted.FileEnv + "=" + profiles}, peerConditions, peerProgram, "--config", config, "--feature-gates=service.profilesSupport")
		c.awaitLine(collectorReady)
		out := &briefSink{samples: map[int64][]briefSample{}}
		r := startReceiver(t, &sink{t: t, visit: out.visit}, func(c *customlabelsreceiver.Config) {
			c.SamplesPerSecond = hz
			c.ReportInterval = 500 * time.Millisecond
		})
		time.Sleep(peerStart)
		awaitKnown(t, dir, out)
		lives := runBriefLives(t, dir)
		time.Sleep(peerDelay)
		r.stop()
		c.stop()
		samples, _, err := emitted.ReadFile(profiles, 0)
		require.NoError(t, err)
		peer := peerSamples{}
		for i := range samples {
			peer[samples[i].PID] = append(peer[samples[i].PID], samples[i])
		}
		fmt.Printf("%d Hz, %d processes of %v\n", hz, len(lives), briefLife)
		toUnix := monoToUnix(t)
		for _, variant := range briefVariants {
			printBoth(t, lives, variant, out, peer, toUnix)
		}
		printBoth(t, lives, "", out, peer, toUnix)
	}
}

// printBoth prints the shares of the processes that lived while the receiver of each hit
// them: of all that ran, since the two do not hit at the same instants.
func printBoth(t *testing.T, lives []life, variant string, out *briefSink, peer peerSamples, toUnix uint64) {
	t.Helper()
	var ours, theirs briefTally
	for i := range lives {
		l := &lives[i]
		if variant != "" && l.variant != variant {
			continue
		}
		ours.add(l, out.samples[int64(l.pid)], toUnix)
		theirs.add(l, peer.of(l), toUnix)
	}
	if variant == "" {
		variant = "all"
		require.NotZero(t, ours.hits, "samples of ours")
		require.NotZero(t, theirs.hits, "samples of the peer's")
	}
	for _, n := range []struct {
		name string
		*briefTally
	}{{"ours", &ours}, {"OTel profiler", &theirs}} {
		fmt.Printf("%-16s %-14s with a sample %5.1f%% of %d; of these with a whole stack %6.2f%%, with labels %6.2f%%; %d samples\n", variant, n.name,
			100*share(n.hit, n.lives), n.lives, 100*share(n.whole, n.hit), 100*share(n.labelled, n.hit), n.hits)
	}
}
