//go:build linux && (amd64 || arm64)

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

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
// test, until labelled samples of the writer have arrived. What it says of addresses,
// encryption and where metrics are shown is replaced; all else is as it stands.
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
	require.NoError(t, os.WriteFile(changes, []byte(toEndpoint(t, parseYAML(t, text), address)), 0o600))
	var env []string
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
	require.Eventually(t, func() bool { return labelled.Load() >= 5 }, time.Minute, 20*time.Millisecond)
	c.stop()
}

// toEndpoint is what is merged over a configuration.
func toEndpoint(t *testing.T, conf *confmap.Conf, address string) string {
	t.Helper()
	changes := []string{"service::telemetry::metrics::level: none"}
	for id := range section(t, conf, "receivers") {
		if id == "custom_labels" || strings.HasPrefix(id, "custom_labels/") {
			changes = append(changes, "receivers::"+id+"::samples_per_second: 199", "receivers::"+id+"::report_interval: 300ms")
		}
	}
	for id := range section(t, conf, "exporters") {
		kind, _, _ := strings.Cut(id, "/")
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
