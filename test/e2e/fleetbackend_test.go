//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// The gateways between our agents and Pyroscope or Parca, and the one of all other backends.
const (
	gatewayBackendsProgram = "../../build/gateway-backends/otelcol-gateway"
	gatewayToBackend       = `
receivers: {otlp: {protocols: {grpc: {endpoint: "%s"}}}}
exporters: {otlp_grpc: {endpoint: "%s", compression: none, timeout: 30s, tls: {insecure: true}}}
service:
  pipelines: {profiles: {receivers: [otlp], exporters: [otlp_grpc]}}
  telemetry: {logs: {encoding: json}, metrics: {level: none}}
`
)

// TestFleetBackend: what comes through a gateway with pprofile v0.162.0 is what Pyroscope and
// Parca (proto 1.10) take, each sample and each tenant; what comes through one with the newest
// pprofile they refuse.
func TestFleetBackend(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	testutil.BuildWriters(t)
	testutil.Start(t, "writer-v1-lib", "shares", "--seconds", "300")
	accounts, got := throughGateway(t, gatewayBackendsProgram)
	require.Empty(t, got.refused)
	require.Empty(t, got.wrong)
	requireNothingLost(t, accounts, got.samples)
	_, refused := throughGateway(t, gatewayProgram)
	require.NotEmpty(t, refused.refused)
	fmt.Printf("through a gateway with pprofile v0.162.0: %d samples, none refused, with tenant %v; with the newest: %q\n",
		got.samples, got.tenants, refused.refused[0])
}

// throughGateway returns the accounts of an agent, and what has come out of a gateway.
func throughGateway(t *testing.T, program string) (accounts []account, got backendTotals) {
	t.Helper()
	c := startCapture(t)
	front := freeAddress(t)
	gateway := startChild(t, nil, program, "--config", "yaml:"+fmt.Sprintf(gatewayToBackend, front, c.grpc), profilesGate)
	gateway.awaitLine(collectorReady)
	changes := filepath.Join(t.TempDir(), "changes.yaml")
	require.NoError(t, os.WriteFile(changes, fmt.Appendf(nil, backendsChanges, c.http, "otlp_grpc/pyroscope"), 0o600))
	agent := &collector{child: startChild(t, []string{"PYROSCOPE=" + front, "HOST_NAME=here"}, collectorProgram,
		"--config", "../../examples/pyroscope.yaml", "--config", changes, profilesGate), changes: changes}
	agent.awaitLine(collectorReady)
	agent.await("samples", func() bool {
		n := 0
		for _, data := range c.requests("grpc") {
			n += len(data)
		}
		return n > 200_000
	})
	agent.stop()
	gateway.stop() // it has sent what it had taken
	for _, data := range c.requests("grpc") {
		got.add(readAsBackend(data))
	}
	return agent.accounts(), got
}
