//go:build linux && (amd64 || arm64)

package e2e

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
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

// peerFileEnv names the file in which test/bench/peer/fileexporter writes.
const peerFileEnv = "CUSTOM_LABELS_PROFILES"

// A peerSink collects from the peer: by PID the samples, and whether they have anything
// that equals the label.
type peerSink struct {
	hits map[int64][]hit
}

func (s *peerSink) visit(b flatBatch) {
	for _, h := range b.hits {
		if h.pid == 0 {
			h.pid, _ = strconv.ParseInt(h.attrs["process.pid"], 10, 64)
		}
		s.hits[h.pid] = append(s.hits[h.pid], h)
	}
}

// read reads what the peer has written.
func (s *peerSink) read(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for len(text) > 4 {
		n := binary.LittleEndian.Uint32(text)
		text = text[4:]
		require.LessOrEqual(t, int(n), len(text))
		p, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(text[:n])
		require.NoError(t, err)
		text = text[n:]
		b, err := flatten(p)
		require.NoError(t, err)
		s.visit(b)
	}
}

// of returns the samples of a process. The peer names no functions of native programs; so
// a stack counts as whole when it is as long as one.
func (s *peerSink) of(l *life) (samples []briefSample) {
	for _, h := range s.hits[int64(l.pid)] {
		sample := briefSample{timeUnixNano: h.timeUnixNano}
		unnamed := 0
		for _, f := range h.functions {
			unnamed += count(strings.HasPrefix(f, "0x"))
		}
		sample.whole = unnamed >= briefFrames
		for _, value := range h.attrs {
			if value == l.value {
				sample.value = value
			}
		}
		samples = append(samples, sample)
	}
	return samples
}

// TestShortLivedPeer runs the same processes under both receivers at once.
func TestShortLivedPeer(t *testing.T) {
	testutil.RequireBPF(t)
	dir := testutil.BuildWriters(t)
	for _, hz := range []int{97, 997} {
		config, profiles := filepath.Join(t.TempDir(), "config.yaml"), filepath.Join(t.TempDir(), "profiles")
		require.NoError(t, os.WriteFile(config, []byte(fmt.Sprintf(peerConfig, hz)), 0o600))
		c := startChild(t, []string{peerFileEnv + "=" + profiles}, peerConditions, peerProgram, "--config", config, "--feature-gates=service.profilesSupport")
		c.awaitLine(collectorReady)
		out := &briefSink{samples: map[int64][]briefSample{}}
		r := startReceiver(t, &sink{t: t, visit: out.visit}, func(c *customlabelsreceiver.Config) {
			c.SamplesPerSecond = hz
			c.ReportInterval = 500 * time.Millisecond
			c.MaxPendingBatches = 64
		})
		time.Sleep(peerStart)
		awaitKnown(t, dir, out)
		lives := runBriefLives(t, dir)
		time.Sleep(peerDelay)
		r.stop()
		c.stop()
		peer := &peerSink{hits: map[int64][]hit{}}
		peer.read(t, profiles)
		fmt.Printf("%d Hz, %d processes of %v\n", hz, len(lives), briefLife)
		toUnix := monoToUnix(t)
		for _, variant := range briefVariants {
			printBoth(lives, variant, out, peer, toUnix)
		}
		printBoth(lives, "", out, peer, toUnix)
	}
}

// printBoth prints the shares of the processes that lived while the receiver of each hit
// them: of all that ran, since the two do not hit at the same instants.
func printBoth(lives []life, variant string, out *briefSink, peer *peerSink, toUnix uint64) {
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
	}
	for _, n := range []struct {
		name string
		*briefTally
	}{{"ours", &ours}, {"OTel profiler", &theirs}} {
		fmt.Printf("%-16s %-14s with a sample %5.1f%% of %d; of these with a whole stack %6.2f%%, with labels %6.2f%%; %d samples\n", variant, n.name,
			100*share(n.hit, n.lives), n.lives, 100*share(n.whole, n.hit), 100*share(n.labelled, n.hit), n.hits)
	}
}
