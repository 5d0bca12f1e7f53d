//go:build linux && (amd64 || arm64)

package e2e

import (
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// notValidated are parts of configurations that are only parsed, by something in them.
var notValidated = map[string]string{
	"headers_setter": "the built collector has no such extension: it is not to be had in a version that builds with the others",
}

// The rest of a configuration of which a page shows a part.
const aroundPart = `
receivers::custom_labels:
exporters::nop:
exporters::otlp_grpc::endpoint: 127.0.0.1:4317
service::pipelines::profiles::receivers: [custom_labels]
service::pipelines::profiles::exporters: [nop]
`

const profilesGate = "--feature-gates=service.profilesSupport"

func parseYAML(t *testing.T, text string) *confmap.Conf {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	return conf
}

// validatePart has the collector validate a part of a configuration.
func validatePart(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	around, part := filepath.Join(dir, "around.yaml"), filepath.Join(dir, "part.yaml")
	require.NoError(t, os.WriteFile(around, []byte(aroundPart), 0o600))
	require.NoError(t, os.WriteFile(part, []byte(text), 0o600))
	out, err := exec.Command(collectorProgram, "validate", "--config", around, "--config", part, profilesGate).CombinedOutput()
	require.NoError(t, err, "%s\n%s", text, out)
}

// runConfiguration runs the collector with a configuration whose exporters lead to this
// test, until labelled samples of the writer have arrived, and, if it shows metrics, until
// they can be read. What it says of addresses, encryption and rates is replaced; all else
// is as it stands.
func runConfiguration(t *testing.T, text string, w *testutil.Writer) {
	t.Helper()
	var labelled atomic.Int64
	address := startEndpoint(t, &sink{t: t, visit: func(b flatBatch) {
		for i := range b.hits {
			if b.hits[i].pid != int64(w.PID) {
				continue
			}
			for key := range b.hits[i].attrs {
				if strings.HasSuffix(key, "label_00") {
					labelled.Add(1)
				}
			}
		}
	}})
	dir := t.TempDir()
	config, changes := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "changes.yaml")
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	conf := parseYAML(t, text)
	series := &prometheusEndpoint{}
	env := []string{"PROMETHEUS_METRICS_URL=" + series.start(t), "HOST_NAME=host"}
	metrics := ""
	if conf.IsSet("service::telemetry::metrics::readers") {
		metrics = freeAddress(t) // last: what listens from now on may get it
	}
	require.NoError(t, os.WriteFile(changes, []byte(toEndpoint(t, conf, address, metrics)), 0o600))
	for _, name := range []string{"OTLP_ENDPOINT", "OTLP_GATEWAY", "PYROSCOPE", "PARCA"} {
		env = append(env, name+"="+address)
	}
	args := []string{"--config", config, "--config", changes, profilesGate}
	validate := exec.Command(collectorProgram, append([]string{"validate"}, args...)...)
	validate.Env = append(os.Environ(), env...)
	out, err := validate.CombinedOutput()
	require.NoError(t, err, "%s\n%s", text, out)
	c := startChild(t, env, collectorProgram, args...)
	c.awaitLine(collectorReady)
	require.Eventually(t, func() bool { return labelled.Load() >= 5 }, 3*time.Minute, 20*time.Millisecond)
	if conf.IsSet("service::pipelines::metrics") {
		c.await("CPU time as metrics", func() bool { return series.has("custom_labels.cpu.time") })
	}
	if metrics != "" {
		c.await("metrics", func() bool { return strings.Contains(get("http://"+metrics+"/metrics"), "custom_labels_hits") })
	}
	c.stop()
}

// prometheusMetricsPath is where a Prometheus takes OTLP metrics.
const prometheusMetricsPath = "/api/v1/otlp/v1/metrics"

// variablesOfExamples are those that have no default.
var variablesOfExamples = regexp.MustCompile(`\$\{env:(\w+)\}`)

// requireVariables: an example is refused without one of its variables, with an error that
// docs/troubleshooting.md has in the row that names the variable.
func requireVariables(t *testing.T, example, text string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	variables := variablesOfExamples.FindAllStringSubmatch(text, -1)
	for _, missing := range variables {
		validate := exec.Command(collectorProgram, "validate", "--config", example, profilesGate)
		for _, set := range variables {
			if set[1] != missing[1] {
				validate.Env = append(validate.Env, set[1]+"=http://127.0.0.1:9")
			}
		}
		out, err := validate.CombinedOutput()
		require.Error(t, err, missing[1])
		row := regexp.MustCompile("(?m)^\\| `([^`]*)` \\| `" + missing[1] + "`").FindSubmatch(page)
		require.NotNil(t, row, "no row for %s, without which there is: %s", missing[1], out)
		for part := range strings.SplitSeq(string(row[1]), "...") {
			require.Contains(t, string(out), part, missing[1])
		}
	}
}

// A prometheusEndpoint takes metrics as Prometheus does, OTLP by HTTP.
type prometheusEndpoint struct {
	mu    sync.Mutex
	names map[string]bool
}

// start serves until the end of the test and returns where it takes metrics.
func (m *prometheusEndpoint) start(t *testing.T) string {
	t.Helper()
	m.names = map[string]bool{}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	return server.URL + prometheusMetricsPath
}

func (m *prometheusEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != prometheusMetricsPath {
		http.NotFound(w, r)
		return
	}
	unpacked, err := gzip.NewReader(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(unpacked)
	request := pmetricotlp.NewExportRequest()
	if err != nil || request.UnmarshalProto(body) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, resource := range request.Metrics().ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				m.names[metric.Name()] = true
			}
		}
	}
}

func (m *prometheusEndpoint) has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.names[name]
}

// get returns what is at an address, "" if nothing.
func get(url string) string {
	response, err := http.Get(url) //nolint:noctx // on this machine, of a child of this test
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

// freeAddress is one that nobody listens at now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// toEndpoint is what is merged over a configuration. metrics is where its metrics are to
// be shown; "" for one that shows none.
func toEndpoint(t *testing.T, conf *confmap.Conf, address, metrics string) string {
	t.Helper()
	changes := []string{"service::telemetry::metrics::level: none"}
	if metrics != "" {
		_, port, err := net.SplitHostPort(metrics)
		require.NoError(t, err)
		changes = []string{"service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: " + port + "}}}}]"}
	}
	for id := range section(t, conf, "receivers") {
		if id == "custom_labels" || strings.HasPrefix(id, "custom_labels/") {
			changes = append(changes, "receivers::"+id+"::samples_per_second: 199", "receivers::"+id+"::report_interval: 300ms")
			if conf.IsSet("service::pipelines::metrics") {
				changes = append(changes, "receivers::"+id+"::metrics::interval: 1s")
			}
		}
	}
	for id := range section(t, conf, "exporters") {
		kind, _, _ := strings.Cut(id, "/")
		if kind == "otlp_http" {
			continue // its address is a variable
		}
		require.Equal(t, "otlp_grpc", kind, "an exporter that this test has no endpoint for")
		changes = append(changes, "exporters::"+id+"::endpoint: "+strconv.Quote(address),
			"exporters::"+id+"::tls::insecure: true", "exporters::"+id+"::compression: gzip")
	}
	return strings.Join(changes, "\n") + "\n"
}

func section(t *testing.T, conf *confmap.Conf, name string) map[string]any {
	t.Helper()
	parts, ok := conf.Get(name).(map[string]any)
	require.True(t, ok, name)
	return parts
}
