//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

const (
	fleetFolder    = "../../deploy/fleet"
	gatewayProgram = "../../build/gateway/otelcol-gateway"
	brokerProgram  = "../../build/fleet/broker"

	profilesMethod = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
)

// A fleet is agents, gateways and a broker on this machine, with the configurations of
// deploy/fleet. What the agents emit goes to the gateways and, beside them, to sent; what
// the gateways pass on arrives at got.
type fleet struct {
	t     *testing.T
	certs string    // folder with tls.crt, tls.key and ca.crt
	front string    // address of the gateway that the agents send to
	kafka string    // address of the broker
	back  string    // address of the backend
	sent  *capture  // requests of the agents
	read  *fleetEnd // what was read of them
	got   *fleetEnd
	gate  fleetGate

	agents  []*collector
	metrics map[string]string // addresses of gateways' metrics, by configuration
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, certs: t.TempDir(), front: freeAddress(t), sent: startCapture(t), read: newFleetEnd(), got: newFleetEnd(), metrics: map[string]string{}}
	f.back = startEndpoint(t, &sink{t: t, visit: f.got.add, refuse: f.gate.pass})
	writeCertificate(t, f.certs)
	return f
}

// writeCertificate writes one for 127.0.0.1, which is its own authority.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	for name, text := range map[string][]byte{
		"tls.crt": crt, "ca.crt": crt, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
}

// startBroker starts one in memory, with the topic of the configurations and others.
func (f *fleet) startBroker(topics ...string) *child {
	f.t.Helper()
	broker := startChild(f.t, nil, brokerProgram, "-topics", strings.Join(append(topics, "otlp_profiles"), ","))
	f.kafka = strings.TrimPrefix(broker.awaitLine("listening on "), "listening on ")
	return broker
}

// toTestFleet are what is merged over the configurations of gateways: addresses and
// certificates of the test, whose backend has no TLS.
const (
	toTestFront = `
receivers: {otlp: {protocols: {grpc: {endpoint: "%[1]s", tls: {cert_file: %[2]s/tls.crt, key_file: %[2]s/tls.key}}}}}
`
	toTestBack = `
exporters: {otlp_grpc: {compression: gzip, tls: {insecure: true}}}
`
	// On a busy machine a program stands still for long, and more so when it is stopped.
	toTestConsumer = `
receivers: {kafka: {session_timeout: 2m}}
`
	toTestTelemetry = `
service: {telemetry: {logs: {encoding: json}, metrics: {readers: %s}}}
`
)

// startGateway starts one with a configuration of deploy/fleet and changes of a test.
func (f *fleet) startGateway(config string, changes ...string) *child {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(fleetFolder, config))
	require.NoError(f.t, err)
	conf := parseYAML(f.t, string(text))
	if conf.IsSet("receivers::otlp") {
		changes = append(changes, fmt.Sprintf(toTestFront, f.front, f.certs))
	}
	if conf.IsSet("receivers::kafka") {
		changes = append(changes, toTestConsumer)
	}
	if conf.IsSet("exporters::otlp_grpc") {
		changes = append(changes, toTestBack)
	}
	args := []string{"--config", filepath.Join(fleetFolder, config), profilesGate}
	for _, change := range append(changes, f.movedReader(config, conf)) {
		args = append(args, "--config", "yaml:"+strings.TrimSpace(change))
	}
	c := startChild(f.t, []string{"KAFKA=" + f.kafka, "BACKEND=" + f.back, "POD_NAME=otelcol-gateway-0"}, gatewayProgram, args...)
	c.awaitLine(collectorReady)
	return c
}

// movedReader has the metrics of a gateway at an address of the test, which it notes.
func (f *fleet) movedReader(config string, conf *confmap.Conf) string {
	f.t.Helper()
	readers := conf.Get("service::telemetry::metrics::readers").([]any)
	require.Len(f.t, readers, 1)
	exporter := readers[0].(map[string]any)["pull"].(map[string]any)["exporter"].(map[string]any)["prometheus"].(map[string]any)
	require.Equal(f.t, 8888, exporter["port"])
	f.metrics[config] = freeAddress(f.t)
	host, port, err := net.SplitHostPort(f.metrics[config])
	require.NoError(f.t, err)
	exporter["host"] = host
	exporter["port"], err = strconv.Atoi(port)
	require.NoError(f.t, err)
	text, err := json.Marshal(readers) // which is YAML, too
	require.NoError(f.t, err)
	return fmt.Sprintf(toTestTelemetry, text)
}

// requireMetrics checks that a gateway has metrics by the names of docs/fleet.md.
func (f *fleet) requireMetrics(config string, names ...string) {
	f.t.Helper()
	text := get("http://" + f.metrics[config] + "/metrics")
	for _, name := range names {
		require.Regexp(f.t, `(?m)^`+name+`\{`, text, config)
	}
}

// toTestAgent is merged over the configuration of an agent: batches come soon, and the same
// goes to the test itself.
const toTestAgent = `
receivers: {custom_labels: {samples_per_second: 199, report_interval: 500ms, error_mode: propagate, max_memory_bytes: 4294967296}}
exporters:
  otlp_grpc: {tls: {ca_file: %[1]s/ca.crt}, retry_on_failure: {initial_interval: 200ms, max_interval: 1s}}
  otlp_grpc/sent: {endpoint: "%[2]s", timeout: 30s, tls: {insecure: true}}
service:
  pipelines: {profiles: {exporters: [otlp_grpc, otlp_grpc/sent]}}
  telemetry: {logs: {encoding: json}, metrics: {level: none}}
`

// startAgent starts one as it runs behind gateways.
func (f *fleet) startAgent(name string) *collector {
	f.t.Helper()
	changes := filepath.Join(f.t.TempDir(), "changes.yaml")
	require.NoError(f.t, os.WriteFile(changes, fmt.Appendf(nil, toTestAgent, f.certs, f.sent.grpc), 0o600))
	c := &collector{child: startChild(f.t, []string{"OTLP_GATEWAY=" + f.front, "HOST_NAME=" + name}, collectorProgram,
		"--config", gatewayConfig, "--config", filepath.Join(fleetFolder, "direct", "agents.yaml"), "--config", changes, profilesGate), changes: changes}
	c.awaitLine(collectorReady)
	return c
}

// send sends a request to the gateway as it is, and returns what the gateway answers.
func (f *fleet) send(ctx context.Context, request []byte) error {
	f.t.Helper()
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(f.certs, "ca.crt"))
	require.NoError(f.t, err)
	require.True(f.t, pool.AppendCertsFromPEM(ca))
	conn, err := grpc.NewClient(f.front, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})))
	require.NoError(f.t, err)
	defer conn.Close()
	var answer []byte
	return conn.Invoke(ctx, profilesMethod, &request, &answer, grpc.ForceCodec(rawCodec{}))
}

// kill ends a program at once, as a kernel does that is out of memory.
func (f *fleet) kill(c *child) {
	f.t.Helper()
	c.signal(syscall.SIGKILL)
	<-c.ended
}

// A fleetGate can hold requests before the backend, which takes them, but does not say so
// until it is opened again.
type fleetGate struct {
	mu      sync.Mutex
	open    chan struct{} // nil: nothing is held
	waiting int
}

func (g *fleetGate) pass() error {
	g.mu.Lock()
	open := g.open
	if open != nil {
		g.waiting++
	}
	g.mu.Unlock()
	if open != nil {
		<-open
	}
	return nil
}

func (g *fleetGate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.waiting = make(chan struct{}), 0
}

func (g *fleetGate) holds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting > 0
}

func (g *fleetGate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
	g.open = nil
}
