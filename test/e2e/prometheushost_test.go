//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const (
	prometheusConfig = "../../examples/prometheus.yaml"
	prometheusRate   = 997
	prometheusPeriod = float64(int64(time.Second)/prometheusRate) / float64(time.Second)
	deadAddress      = "127.0.0.1:9"
)

// A promHost stands for a host of a fleet: a collector with examples/prometheus.yaml that
// samples the programs of one folder, and what its profiles have of them.
type promHost struct {
	*collector
	t             *testing.T
	name, dir     string
	scrape        string // its address
	writers       []*promWriter
	mu            sync.Mutex
	hits          map[string]float64 // samples by PID, tenant and route
	profilesTaken int
}

// A promWriter runs on such a host.
type promWriter struct {
	*testutil.Writer
	service, truth string
	cpu            time.Duration // of one without labels
}

func newPromHost(t *testing.T, name string) *promHost {
	t.Helper()
	return &promHost{t: t, name: name, dir: t.TempDir(), scrape: freeAddress(t), hits: map[string]float64{}}
}

// start runs the collector. What the changes say is merged over the example.
func (h *promHost) start(p *prometheus, gateway, changes string, through ...string) {
	h.t.Helper()
	h.collector = &collector{changes: filepath.Join(h.t.TempDir(), "changes.yaml")}
	h.write(h.t, changes)
	_, port, err := net.SplitHostPort(h.scrape)
	require.NoError(h.t, err)
	always := filepath.Join(h.t.TempDir(), "always.yaml")
	require.NoError(h.t, os.WriteFile(always, fmt.Appendf(nil, `
service::telemetry::logs::encoding: json
service::telemetry::metrics::readers:
  - {pull: {exporter: {prometheus: {host: 127.0.0.1, port: %s, without_type_suffix: true, without_units: true, without_scope_info: true}}}}
`, port), 0o600))
	command := append(through, collectorProgram, "--config", prometheusConfig, "--config", always, "--config", h.changes, profilesGate)
	h.child = startChild(h.t, []string{"OTLP_GATEWAY=" + gateway, "PROMETHEUS_METRICS_URL=http://" + p.address + prometheusMetricsPath, "HOST_NAME=" + h.name}, command[0], command[1:]...)
	h.awaitLine(collectorReady)
}

// healthy are the changes for a collector that loses nothing, however busy the machine.
func (h *promHost) healthy() string {
	return fmt.Sprintf(`
receivers::custom_labels: {samples_per_second: %d, report_interval: 500ms, max_memory_bytes: 4294967296, metrics: {interval: 1s}, targets: {include: [{executable: "%s/*"}]}}
exporters::otlp_grpc: {tls: {insecure: true}, timeout: 30s}
exporters::otlp_http/prometheus: {timeout: 30s}
`, prometheusRate, h.dir)
}

// startHealthy has an endpoint of its own for the profiles.
func (h *promHost) startHealthy(p *prometheus) {
	h.t.Helper()
	h.start(p, startEndpoint(h.t, &sink{t: h.t, visit: h.visit}), h.healthy())
}

func (h *promHost) visit(b flatBatch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.profilesTaken += len(b.hits)
	for i := range b.hits {
		hit := &b.hits[i]
		h.hits[fmt.Sprintf("%d %s %s", hit.pid, label(hit, "tenant"), label(hit, "route"))]++
	}
}

// program copies one into the host's folder, where the collector looks, under a name of its own.
func (h *promHost) program(source, name string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	copyFile(h.t, source, path, 0o755)
	return path
}

// run starts a writer of mode shares, or, of no variant, one without labels.
func (h *promHost) run(variant, name, service string) {
	h.t.Helper()
	w := &promWriter{service: service}
	args := []string{"shares", "--threads", "1", "--seconds", "600"}
	if variant == "spin-plain" {
		args[0] = "spin"
	} else {
		w.truth = filepath.Join(h.t.TempDir(), "truth.json")
		args = append(args, "--truth", w.truth)
	}
	if strings.Contains(variant, "-ctx-") {
		args = append(args, "--service", service)
	}
	w.Writer = testutil.StartPath(h.t, h.program(filepath.Join(testutil.BuildWriters(h.t), variant), name), args...)
	h.writers = append(h.writers, w)
}

// stopWriters ends them; their truth is whole then.
func (h *promHost) stopWriters() {
	h.t.Helper()
	for _, w := range h.writers {
		if w.truth == "" {
			w.cpu = cpuTime(h.t, w.PID)
		}
		w.Stop()
	}
}

// sampled are the samples of the profiles, by PID, tenant and route.
func (h *promHost) sampled() map[string]float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]float64{}
	for name, n := range h.hits {
		all[name] = n
	}
	return all
}

// metered are the samples of the metrics, as Prometheus has them.
func (h *promHost) metered(p *prometheus) map[string]float64 {
	h.t.Helper()
	samples := p.sums(fmt.Sprintf(
		`sum by (process_pid, tenant, route) (last_over_time(custom_labels_cpu_time_seconds_total{host_name=%q}[1h]))`, h.name,
	), "process_pid", "tenant", "route")
	for name, seconds := range samples {
		samples[name] = seconds / prometheusPeriod
	}
	return samples
}

// agree reports whether metrics and profiles have the same samples.
func (h *promHost) agree(p *prometheus) bool {
	profiles, metrics := h.sampled(), h.metered(p)
	if len(profiles) != len(metrics) {
		return false
	}
	for name, n := range profiles {
		if diff := metrics[name] - n; diff < -0.01 || diff > 0.01 { // sums of seconds are rounded
			return false
		}
	}
	return true
}

// addTruth adds the CPU time that the writers measured: by tenant, by tenant and route, and by service.
func (h *promHost) addTruth(truth *promTruth) {
	h.t.Helper()
	for _, w := range h.writers {
		if w.truth == "" {
			truth.add(w.service, "", "", w.cpu.Seconds())
			continue
		}
		measured, err := testutil.ReadTruth(w.truth)
		require.NoError(h.t, err)
		for _, set := range measured.Sets {
			truth.add(w.service, set.Labels["tenant"], set.Labels["route"], set.CPU.Seconds())
		}
	}
}

// A promTruth is the CPU time that writers measured, in seconds, by what a query tells apart.
type promTruth struct {
	all, without           float64
	tenant, route, service map[string]float64
	serviceWithout         map[string]float64
}

func newPromTruth() *promTruth {
	return &promTruth{
		tenant: map[string]float64{}, route: map[string]float64{},
		service: map[string]float64{}, serviceWithout: map[string]float64{},
	}
}

func (p *promTruth) add(service, tenant, route string, seconds float64) {
	p.all += seconds
	p.service[service] += seconds
	if tenant == "" {
		p.without += seconds
		p.serviceWithout[service] += seconds
		return
	}
	p.tenant[tenant] += seconds
	p.route[tenant+" "+route] += seconds
}
