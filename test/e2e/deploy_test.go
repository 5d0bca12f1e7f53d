//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const (
	systemdUnit   = "../../deploy/systemd/otelcol-customlabels.service"
	daemonSet     = "../../deploy/kubernetes/daemonset.yaml"
	gatewayConfig = "../../examples/otlp-gateway.yaml"

	// toTestEndpoint is merged over the configurations: the test's endpoint has no TLS.
	toTestEndpoint = `
receivers::custom_labels::samples_per_second: 199
receivers::custom_labels::report_interval: 500ms
exporters::otlp_grpc::tls::insecure: true
exporters::otlp_grpc::compression: gzip
service::telemetry::logs::encoding: json
service::telemetry::metrics::level: none
`
)

// A deployment is what runs the collector somewhere.
type deployment struct {
	name         string
	capabilities []string // with CAP_
	config       string   // file
	args         []string // but for --config
}

// TestDeploy runs the collector as the systemd unit and the DaemonSet do: with their
// configurations and arguments, as an unprivileged user with exactly their capabilities.
// Labelled samples of another user's program arrive, and the log misses no capability.
func TestDeploy(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	setParanoid(t, 2)
	var want []string
	for _, d := range documented {
		want = append(want, d.name)
	}
	slices.Sort(want)
	for _, d := range []deployment{readUnit(t), readDaemonSet(t)} {
		t.Run(d.name, func(t *testing.T) {
			require.Equal(t, want, d.capabilities, "those of README.md")
			runDeployment(t, &d)
		})
	}
}

func runDeployment(t *testing.T, d *deployment) {
	t.Helper()
	w := testutil.Start(t, "writer-v1-lib", "spin", "--labels", "1", "--threads", "1", "--seconds", "300")
	var labelled atomic.Int64
	out := &sink{t: t, visit: countLabelled(w, &labelled)}
	dir := publicDir(t)
	program, config := filepath.Join(dir, "otelcol-customlabels"), filepath.Join(dir, "config.yaml")
	changes := filepath.Join(dir, "changes.yaml")
	copyFile(t, collectorProgram, program, 0o755)
	copyFile(t, d.config, config, 0o644)
	require.NoError(t, os.WriteFile(changes, []byte(toTestEndpoint), 0o644)) //nolint:gosec // read by the other user

	var names []string
	for _, c := range d.capabilities {
		names = append(names, "+"+strings.ToLower(strings.TrimPrefix(c, "CAP_")))
	}
	caps := "-all," + strings.Join(names, ",")
	args := append([]string{
		"--reuid", strconv.Itoa(nobody), "--regid", strconv.Itoa(nobody), "--clear-groups", "--no-new-privs",
		"--inh-caps", caps, "--ambient-caps", caps, "--bounding-set", caps,
		program, "--config", config, "--config", changes,
	}, d.args...)
	setpriv, err := exec.LookPath("setpriv")
	require.NoError(t, err)
	c := startChild(t, []string{"OTLP_GATEWAY=" + startEndpoint(t, out), "NODE_NAME=here"}, setpriv, args...)
	c.awaitLine(collectorReady)
	require.Eventually(t, func() bool { return labelled.Load() >= 20 }, time.Minute, 50*time.Millisecond)
	c.stop()
	require.NotContains(t, c.stderr.String(), "missing capability")
	fmt.Printf("%-12s as an unprivileged user with %s: %d labelled samples of another user\n",
		d.name, strings.Join(d.capabilities, " "), labelled.Load())
}

// publicDir is a folder that other users can reach.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "deploy")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // so
	return dir
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, text, mode))
}

// readUnit reads the systemd unit, which runs with the example of a gateway.
func readUnit(t *testing.T) deployment {
	t.Helper()
	text, err := os.ReadFile(systemdUnit)
	require.NoError(t, err)
	settings := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			settings[key] = value
		}
	}
	require.Equal(t, settings["AmbientCapabilities"], settings["CapabilityBoundingSet"])
	require.Equal(t, "yes", settings["NoNewPrivileges"])
	d := deployment{name: "systemd", config: gatewayConfig, capabilities: strings.Fields(settings["AmbientCapabilities"])}
	slices.Sort(d.capabilities)
	d.args = withoutConfig(t, strings.Fields(settings["ExecStart"])[1:])
	return d
}

// withoutConfig takes the one configuration out of arguments.
func withoutConfig(t *testing.T, args []string) (rest []string) {
	t.Helper()
	configs := 0
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--config":
			configs++
			i++
		case strings.HasPrefix(args[i], "--config="):
			configs++
		default:
			rest = append(rest, args[i])
		}
	}
	require.Equal(t, 1, configs)
	return rest
}

// readDaemonSet reads the Kubernetes objects: the configuration is in one of them.
func readDaemonSet(t *testing.T) deployment {
	t.Helper()
	text, err := os.ReadFile(daemonSet)
	require.NoError(t, err)
	d := deployment{name: "kubernetes"}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(doc))
		require.NoError(t, err)
		object, err := retrieved.AsConf()
		require.NoError(t, err)
		switch object.Get("kind") {
		case "ConfigMap":
			data, ok := object.Get("data").(map[string]any)["config.yaml"].(string)
			require.True(t, ok)
			d.config = filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(d.config, []byte(data), 0o600))
		case "DaemonSet":
			pod := object.Get("spec::template::spec").(map[string]any)
			require.Equal(t, true, pod["hostPID"])
			container := pod["containers"].([]any)[0].(map[string]any)
			d.args = withoutConfig(t, texts(container["args"]))
			caps := container["securityContext"].(map[string]any)["capabilities"].(map[string]any)
			require.Equal(t, []string{"ALL"}, texts(caps["drop"]))
			for _, c := range texts(caps["add"]) {
				d.capabilities = append(d.capabilities, "CAP_"+c)
			}
			slices.Sort(d.capabilities)
		}
	}
	require.NotEmpty(t, d.config)
	return d
}

func texts(list any) (out []string) {
	for _, v := range list.([]any) {
		out = append(out, fmt.Sprint(v))
	}
	return out
}
