//go:build linux && (amd64 || arm64)

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// fleetAgents is the sentence of docs/fleet.md that names the configuration of agents outside of Kubernetes.
var fleetAgents = regexp.MustCompile(`Agents on hosts without Kubernetes.* use \[[^]]*\]\(([^)]*)\)`)

// TestFleetWaits: agents wait for a gateway for longer than it waits for its backend, never give a request up, and hold a
// number of bytes: on Kubernetes and by the configuration that docs/fleet.md names for other hosts.
func TestFleetWaits(t *testing.T) {
	page, err := os.ReadFile("../../docs/fleet.md")
	require.NoError(t, err)
	named := fleetAgents.FindSubmatch(page)
	require.NotNil(t, named, "docs/fleet.md names a configuration for hosts without Kubernetes")
	read := func(path string) *confmap.Conf {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return parseYAML(t, string(text))
	}
	type waits struct {
		Timeout time.Duration  `mapstructure:"timeout"`
		Retry   map[string]any `mapstructure:"retry_on_failure"`
		Queue   map[string]any `mapstructure:"sending_queue"`
	}
	of := func(c *confmap.Conf) (w waits) {
		exporter, err := c.Sub("exporters::otlp_grpc")
		require.NoError(t, err)
		require.NoError(t, exporter.Unmarshal(&w, confmap.WithIgnoreUnused()))
		return w
	}
	gateway := of(read(filepath.Join(fleetFolder, "direct", "config.yaml"))).Timeout
	require.Positive(t, gateway)
	node := of(read(readDaemonSet(t).config))
	require.Greater(t, node.Timeout, gateway)
	require.Equal(t, map[string]any{"max_elapsed_time": "0s"}, node.Retry)
	require.Equal(t, map[string]any{"sizer": "bytes", "queue_size": 128 << 20}, node.Queue)
	require.Zero(t, of(read(filepath.Join(fleetFolder, "direct", "agents.yaml"))), "what agents have besides changes none of it")
	for _, example := range []string{filepath.Join("../../docs", string(named[1])), "../../examples/prometheus.yaml"} {
		require.Equal(t, node, of(read(example)), "%s waits as the DaemonSet does", example)
	}
}
