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

// gatewayToBackend is a gateway between agents and Pyroscope or Parca: middlewares or none.
const gatewayToBackend = `
receivers: {otlp: {protocols: {grpc: {endpoint: "%s"}}}}
extensions: {inline_strings: {}}
exporters: {otlp_grpc: {endpoint: "%s", compression: none, timeout: 30s, tls: {insecure: true}, middlewares: [%s]}}
service:
  extensions: [inline_strings]
  pipelines: {profiles: {receivers: [otlp], exporters: [otlp_grpc]}}
  telemetry: {logs: {encoding: json}, metrics: {level: none}}
`

// TestFleetBackend: what comes through a gateway with the extension inline_strings is what
// Pyroscope and Parca (proto 1.10) take, each sample and each tenant, whether agents send
// strings in place or references; what comes through one without it they refuse.
func TestFleetBackend(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	testutil.BuildWriters(t)
	testutil.Start(t, "writer-v1-lib", "shares", "--seconds", "300")
	const inPlace, references = "{id: inline_strings}", ""
	for _, agents := range []string{inPlace, references} {
		accounts, got := throughGateway(t, agents, inPlace)
		require.Empty(t, got.refused)
		require.Empty(t, got.wrong)
		requireNothingLost(t, accounts, got.samples)
		fmt.Printf("through a gateway with inline_strings, agents with %q: %d samples, none refused, with tenant %v\n", agents, got.samples, got.tenants)
	}
	_, got := throughGateway(t, inPlace, references)
	require.Contains(t, fmt.Sprint(got.refused), "an attribute with an empty key", "without the extension")
}

// throughGateway returns the accounts of an agent, and what has come out of a gateway, by the
// middlewares of their exporters.
func throughGateway(t *testing.T, ofAgent, ofGateway string) (accounts []account, got backendTotals) {
	t.Helper()
	c := startCapture(t)
	front := freeAddress(t)
	gateway := startChild(t, nil, gatewayProgram, "--config", "yaml:"+fmt.Sprintf(gatewayToBackend, front, c.grpc, ofGateway), profilesGate)
	gateway.awaitLine(collectorReady)
	changes := filepath.Join(t.TempDir(), "changes.yaml")
	require.NoError(t, os.WriteFile(changes, fmt.Appendf(nil, backendsChanges, c.http, "otlp_grpc/pyroscope"), 0o600))
	agent := &collector{child: startChild(t, []string{"PYROSCOPE=" + front, "HOST_NAME=here"}, collectorProgram,
		"--config", "../../examples/pyroscope.yaml", "--config", changes, profilesGate,
		"--set", "exporters::otlp_grpc/pyroscope::middlewares=["+ofAgent+"]"), changes: changes}
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
