//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// promSamples are those of each host before the writers end.
var promSamples = size(20_000.0, 3_000.0, 500.0)

const (
	// promFalseAlarms is the chance that a right build fails, over all comparisons by chi-square.
	promFalseAlarms = 1e-4
	// promShare is how far a share in a panel may be from the truth: a panel has rates over
	// seconds, which Prometheus extrapolates.
	promShare = 0.03
	// promWhole is how far the sum of all CPU time may be, for the same reason.
	promWhole = 0.1
)

// TestPrometheus: a real Prometheus with the files of deploy/prometheus, and a fleet of
// collectors with examples/prometheus.yaml. Two hosts are healthy: metrics, profiles and
// writers agree on the CPU time of tenants, and so do the rules and the panels of the
// dashboard. Of three others each has what alerts are for.
func TestPrometheus(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	testutil.BuildWriters(t)
	testutil.Measure(t, measurePrometheus)
}

// TestPrometheusRules runs the tests of the rules as they are, by minutes.
func TestPrometheusRules(t *testing.T) {
	cmd := exec.Command("promtool", "test", "rules", "rules_test.yaml")
	cmd.Dir = prometheusFiles
	out, err := cmd.CombinedOutput()
	fmt.Print(string(out))
	require.NoError(t, err)
}

func measurePrometheus(t *testing.T, bounds *testutil.Bounds) {
	dash := readDashboard(t)
	a, b := newPromHost(t, "host-a"), newPromHost(t, "host-b")
	losing, idle := newPromHost(t, "host-c"), newPromHost(t, "host-d")
	hosts := []*promHost{a, b}
	p := startPrometheus(t, a.scrape, b.scrape, losing.scrape, idle.scrape, deadAddress)
	losing.startLosing(p)
	idle.startUnprivileged(p)
	for _, h := range hosts {
		h.startHealthy(p)
	}
	a.run("writer-ctx-exe", "shop", "shop")
	a.run("writer-v1-exe", "mail", "unknown_service:mail")
	a.run("spin-plain", "batch", "unknown_service:batch")
	b.run("writer-ctx-exe", "shop", "shop")
	b.run("writer-v0-exe", "search", "unknown_service:search")

	healthy := a.scrape + "|" + b.scrape
	p.await("samples of the healthy hosts", func() bool {
		sums := p.sums(`sum by (host_name) (custom_labels_cpu_time_seconds_total)`, "host_name")
		return min(sums["host-a"], sums["host-b"]) > promSamples*prometheusPeriod
	})
	checkRules(t, p, healthy)
	for _, h := range hosts {
		h.stopWriters()
	}
	truth := newPromTruth()
	for _, h := range hosts {
		p.await("all samples of "+h.name, func() bool { return h.agree(p) })
		h.addTruth(truth)
	}
	checkCounters(t, bounds, p, truth)
	p.await("the end of all rates", func() bool { return p.sums(`fleet:custom_labels_cpu_time_seconds:rate5m`)[""] == 0 })
	checkPanels(t, bounds, p, dash, healthy, truth)
	dash.checkVariables(p, map[string][]string{
		"tenant": tenantNames, "service": slices.Collect(maps.Keys(truth.service)), "instance": {a.scrape, b.scrape},
	})
	checkAlerts(t, p, dash, losing, healthy)

	for _, h := range hosts {
		h.stop()
		accounts := h.accounts()
		require.Len(t, accounts, 1)
		h.mu.Lock()
		taken := h.profilesTaken
		h.mu.Unlock()
		requireNothingLost(t, accounts, taken)
		p.await("what the end has brought", func() bool { return h.agree(p) })
		fmt.Printf("%s: %d samples in the profiles, in Prometheus and in the account\n", h.name, taken)
	}
}

// newPrograms runs copies of a program, each of which is a new file to read.
const newPrograms = `n=0
while :; do
	n=$((n+1))
	cp "$0" "$1/new-$n"
	timeout 0.02 "$1/new-$n" 1
	rm "$1/new-$n"
done`

// startLosing has a collector lose in all ways at once, with programs that give it work: no
// backend takes anything, there is no room for labels, nor time to read files, and one
// program does not answer.
func (h *promHost) startLosing(p *prometheus) {
	h.t.Helper()
	startUntilEnd(h.t, h.program(compileProgram(h.t, "../../testdata/hostile/unserved.c"), "unserved"), []string{fmt.Sprint(attacker)})
	h.run("writer-v1-exe", "many", "unknown_service:many")
	files := exec.Command("/bin/sh", "-c", newPrograms, "/bin/sleep", h.dir)
	require.NoError(h.t, files.Start())
	h.t.Cleanup(func() {
		_ = files.Process.Kill()
		_ = files.Wait() // it was killed
	})
	h.start(p, deadAddress, h.losing(deadAddress, 0.01, 8))
}

// losing are its changes; the metrics go to a second address, which may be a good one.
func (h *promHost) losing(metrics string, backgroundCPU float64, labelSets int) string {
	return fmt.Sprintf(`
receivers::custom_labels: {samples_per_second: 97, report_interval: 500ms, max_background_cpu: %g, max_user_label_sets: %d, metrics: {interval: 1s}, targets: {include: [{executable: "%s/*"}]}}
exporters:
  otlp_grpc: {sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
  otlp_http/prometheus: {metrics_endpoint: "http://%s/api/v1/otlp/v1/metrics", sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
  otlp_http/dead: {metrics_endpoint: "http://%s/", sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
  otlp_http/waiting: {metrics_endpoint: "http://%s/", sending_queue: {queue_size: 4, num_consumers: 1}, retry_on_failure: {max_elapsed_time: 0s}}
service::pipelines::metrics::exporters: [otlp_http/prometheus, otlp_http/dead, otlp_http/waiting]
`, backgroundCPU, labelSets, h.dir, metrics, deadAddress, deadAddress)
}

// startUnprivileged has a collector run whose receiver cannot start.
func (h *promHost) startUnprivileged(p *prometheus) {
	h.t.Helper()
	setpriv, err := exec.LookPath("setpriv")
	require.NoError(h.t, err)
	h.start(p, deadAddress, "receivers::custom_labels: {error_mode: ignore}\n", setpriv, "--bounding-set", "-all")
}

// checkCounters compares what Prometheus has, sample by sample, with the truth.
func checkCounters(t *testing.T, bounds *testutil.Bounds, p *prometheus, truth *promTruth) {
	t.Helper()
	const counter = `last_over_time(custom_labels_cpu_time_seconds_total{host_name=~"host-a|host-b", tenant!=""}[1h])`
	level := testutil.Bonferroni(promFalseAlarms, 2)
	for _, of := range []struct {
		by   []string
		want map[string]float64
	}{{[]string{"tenant"}, truth.tenant}, {[]string{"tenant", "route"}, truth.route}} {
		got := p.sums("sum by ("+strings.Join(of.by, ", ")+") ("+counter+")", of.by...)
		var counts []uint64
		var shares []float64
		for _, name := range slices.Sorted(maps.Keys(of.want)) {
			counts = append(counts, uint64(got[name]/prometheusPeriod+0.5))
			shares = append(shares, of.want[name])
			fmt.Printf("%-24s %8.3f s in Prometheus, %8.3f s measured\n", name, got[name], of.want[name])
			delete(got, name)
		}
		require.Empty(t, got, "of nobody")
		fit, err := testutil.ChiSquare(counts, shares)
		require.NoError(t, err)
		fmt.Printf("by %v: p = %.2g\n", of.by, fit.P)
		require.Greater(bounds, fit.P, level)
	}
	all := p.sums(`sum(last_over_time(custom_labels_cpu_time_seconds_total{host_name=~"host-a|host-b"}[1h]))`)[""]
	fmt.Printf("CPU time of all: %.3f s in Prometheus, %.3f s measured\n", all, truth.all)
	require.InEpsilon(bounds, truth.all, all, promWhole)
}
