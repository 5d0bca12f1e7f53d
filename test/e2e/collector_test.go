//go:build linux && (amd64 || arm64)

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/conformance"
)

// TestCollector runs the collector that ocb built, with the otlp exporter, in its
// own process.
func TestCollector(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	testutil.BuildWriters(t)
	t.Run("profiles", testCollectorProfiles)
	t.Run("reload", testCollectorReload)
	t.Run("two receivers", testCollectorTwoReceivers)
	t.Run("labelprof", testCollectorLabelprof)
}

// testCollectorProfiles checks all that arrives about writers of every ABI and load
// mode, and that SIGTERM loses nothing.
func testCollectorProfiles(t *testing.T) {
	enough := size(300, 50, 50) // checked samples of each writer
	writers := startCollectorWriters(t)
	start := time.Now()
	done := make(chan struct{})
	out := &sink{t: t, visit: func(b flatBatch) {
		now := time.Now()
		least := enough
		for i := range b.hits {
			h := &b.hits[i]
			require.GreaterOrEqual(t, h.timeUnixNano, uint64(start.UnixNano()))
			require.LessOrEqual(t, h.timeUnixNano, uint64(now.UnixNano()))
			if w := writers[h.pid]; w != nil {
				w.check(t, h)
			}
		}
		for _, w := range writers {
			least = min(least, w.labelled)
			if w.linked > 0 && !w.spin {
				least = min(least, w.named)
			}
		}
		if least == enough && done != nil {
			close(done)
			done = nil
		}
	}}
	finished := done
	c := startCollector(t, startEndpoint(t, out), "receivers::custom_labels: {samples_per_second: 997, report_interval: 1s}\n")
	select {
	case <-finished:
	case <-time.After(5 * time.Minute):
	}
	c.stop()

	fmt.Printf("%-18s %8s %8s %8s  %s\n", "writer", "samples", "labelled", "linked", "hottest functions")
	for _, w := range writers {
		fmt.Printf("%-18s %8d %8d %8d  %s\n", w.variant, w.hits, w.labelled, w.linked, w.hottest())
		require.GreaterOrEqual(t, w.labelled, enough, w.variant)
		if w.linked > 0 && !w.spin {
			require.GreaterOrEqual(t, w.named, enough, w.variant)
		}
	}
	_, received := out.received()
	accounts := c.accounts()
	require.Len(t, accounts, 1)
	fmt.Printf("SIGTERM: %+v; received %d\n", accounts[0], received)
	requireNothingLost(t, accounts, received)
}

// testCollectorReload changes the configuration of a running collector several
// times: profiles flow again at the new rate, and nothing of the old pipeline stays.
func testCollectorReload(t *testing.T) {
	w := testutil.Start(t, "writer-v1-dlopen", "spin", "--labels", "1", "--seconds", "300")
	var labelledAt atomic.Int64 // the period of the last labelled sample of the writer
	out := &sink{t: t, visit: func(b flatBatch) {
		for i := range b.hits {
			if h := &b.hits[i]; h.pid == int64(w.PID) && h.attrs[prefix+"label_00"] != "" {
				labelledAt.Store(b.period)
			}
		}
	}}
	// Of the writer alone: what is open for others changes with what else runs.
	config := func(rate int64) string {
		return fmt.Sprintf("receivers::custom_labels: {samples_per_second: %d, targets: {include: [{pid: %d}]}}\n", rate, w.PID)
	}
	c := startCollector(t, startEndpoint(t, out), config(97))
	flows := func(rate int64) {
		c.await("labelled samples", func() bool { return labelledAt.Load() == int64(time.Second)/rate })
	}
	flows(97)
	first := settledKernelObjectsOf(t, c.cmd.Process.Pid, kernelObjects.counts)
	fmt.Printf("running: %v\n", first)
	require.NotEmpty(t, first.programs)
	require.NotEmpty(t, first.maps)
	require.NotZero(t, first.perfEvents)
	want := first.counts()
	want.filesTwice = 0
	before := first
	rates := []int64{197, 499, 19, 997}
	for _, rate := range rates {
		c.reload(config(rate))
		flows(rate)
		before.requireGone(t)
		after := requireSame(t, c.cmd.Process.Pid, want)
		fmt.Printf("reloaded with %3d samples a second: %v\n", rate, after)
		before = after
	}
	c.stop()
	before.requireGone(t)
	_, received := out.received()
	accounts := c.accounts()
	require.Len(t, accounts, 1+len(rates), "one for each pipeline")
	requireNothingLost(t, accounts, received)
	fmt.Printf("%d reloads: received all %d samples that the pipelines emitted\n", len(rates), received)
}

// testCollectorTwoReceivers has two receivers in one pipeline; each samples and
// accounts for itself.
func testCollectorTwoReceivers(t *testing.T) {
	w := testutil.Start(t, "writer-v1-lib", "spin", "--labels", "1", "--seconds", "300")
	const rateA, rateB = 97, 499
	received := map[int64]int64{} // by period
	var labelledA, labelledB atomic.Int64
	out := &sink{t: t, visit: func(b flatBatch) {
		received[b.period] += int64(len(b.hits))
		for i := range b.hits {
			h := &b.hits[i]
			if h.pid != int64(w.PID) {
				continue
			}
			if h.attrs["a.label_00"] != "" {
				require.EqualValues(t, int64(time.Second)/rateA, b.period)
				labelledA.Add(1)
			}
			if h.attrs["b.label_00"] != "" {
				require.EqualValues(t, int64(time.Second)/rateB, b.period)
				labelledB.Add(1)
			}
		}
	}}
	c := startCollector(t, startEndpoint(t, out), fmt.Sprintf(`
receivers:
  custom_labels/a: {samples_per_second: %d, report_interval: 1s, labels: {prefix: a.}}
  custom_labels/b: {samples_per_second: %d, report_interval: 1s, labels: {prefix: b.}}
service::pipelines::profiles::receivers: [custom_labels/a, custom_labels/b]
`, rateA, rateB))
	c.await("labelled samples of both", func() bool { return labelledA.Load() > 100 && labelledB.Load() > 500 })
	objects := kernelObjectsOf(t, c.cmd.Process.Pid)
	c.stop()
	objects.requireGone(t)
	accounts := c.accounts()
	require.Len(t, accounts, 2)
	for _, a := range accounts {
		rate := map[string]int64{"custom_labels/a": rateA, "custom_labels/b": rateB}[a.Receiver]
		require.NotZero(t, rate, a.Receiver)
		fmt.Printf("%s: %+v\n", a.Receiver, a)
		require.Equal(t, received[int64(time.Second)/rate], a.Emitted, a.Receiver)
	}
	_, all := out.received()
	requireNothingLost(t, accounts, all)
}

// testCollectorLabelprof has the real labelprof at the other end.
func testCollectorLabelprof(t *testing.T) {
	dir := t.TempDir()
	otlpFile, pprofFile := filepath.Join(dir, "profiles.otlp"), filepath.Join(dir, "profile.pb.gz")
	args := []string{"serve", "--listen", "127.0.0.1:0", "--web", "", "--interval", "500ms", "--by", "tenant", "--out-otlp", otlpFile, "--pprof", pprofFile}
	for _, variant := range []string{"writer-v0-exe", "writer-v1-dlopen"} {
		truth := filepath.Join(dir, variant+".json")
		testutil.Start(t, variant, "shares", "--seconds", "300", "--truth", truth)
		args = append(args, "--truth", truth)
	}
	spin := testutil.Start(t, "writer-ctx-lib", "spin", "--labels", "2", "--seconds", "300")
	prof := startChild(t, nil, labelprofProgram, args...)
	line := prof.awaitLine("receiving OTLP profiles at ")
	address := line[strings.LastIndexByte(line, ' ')+1:]
	c := startCollector(t, address, "receivers::custom_labels: {samples_per_second: 997, report_interval: 500ms}\n")
	prof.await("all tenants, and a sample of the trace", func() bool {
		file, err := os.ReadFile(otlpFile)
		return err == nil && bytes.Contains(file, spinLink.traceID[:]) && strings.Contains(prof.stdout.String(), "umbrella")
	})
	c.stop()
	prof.stop()

	table := prof.stdout.String()
	fmt.Print(table[strings.LastIndex(table, "CPU by "):])
	for _, part := range []string{"CPU by tenant", "acme", "globex", "initech", "umbrella", "measured", "parse_json"} {
		require.Contains(t, table, part)
	}
	hits := readOTLPFile(t, otlpFile)
	linked := 0
	for i := range hits {
		if hits[i].link == spinLink {
			require.EqualValues(t, spin.PID, hits[i].pid)
			linked++
		}
	}
	require.NotZero(t, linked)
	accounts := c.accounts()
	require.Len(t, accounts, 1)
	requireNothingLost(t, accounts, len(hits))
	requirePprof(t, pprofFile, len(hits), linked)
	fmt.Printf("labelprof: all %d samples, %d of them linked to the writer's trace, are in its OTLP file and its pprof file\n", len(hits), linked)
}

// readOTLPFile reads what --out-otlp writes: requests with a length of 4 bytes before each.
func readOTLPFile(t *testing.T, name string) []hit {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	var hits []hit
	for len(data) > 0 {
		require.Greater(t, len(data), 4)
		size := int(binary.BigEndian.Uint32(data))
		data = data[4:]
		require.LessOrEqual(t, size, len(data))
		request := pprofileotlp.NewExportRequest()
		require.NoError(t, request.UnmarshalProto(data[:size]))
		data = data[size:]
		require.Empty(t, conformance.Check(request.Profiles()))
		b, err := flatten(request.Profiles())
		require.NoError(t, err)
		hits = append(hits, b.hits...)
	}
	return hits
}

// requirePprof checks that the profile has all hits, and that the pprof command finds a tenant's.
func requirePprof(t *testing.T, name string, hits, linked int) {
	t.Helper()
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	p, err := profile.Parse(file)
	require.NoError(t, err)
	require.Equal(t, "samples", p.SampleType[0].Type)
	var sum, ofTrace int64
	for _, s := range p.Sample {
		sum += s.Value[0]
		if s.HasLabel("trace_id", fmt.Sprintf("%x", spinLink.traceID)) && s.HasLabel("span_id", fmt.Sprintf("%x", spinLink.spanID)) {
			ofTrace += s.Value[0]
		}
	}
	require.EqualValues(t, hits, sum)
	require.EqualValues(t, linked, ofTrace)

	pprof := exec.Command("go", "tool", "pprof", "-top", "-tagfocus", "tenant=acme", name)
	var stderr bytes.Buffer
	pprof.Stderr = &stderr
	top, err := pprof.Output()
	require.NoError(t, err, stderr.String())
	require.Contains(t, string(top), "parse_json")
	require.NotContains(t, string(top), "encode_frame", "a function of another tenant")
}
