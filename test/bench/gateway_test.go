//go:build linux && (amd64 || arm64)

package bench

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const (
	gatewayPath   = "../../build/gateway/otelcol-gateway"
	agentsPath    = "../../build/fleet/agents"
	gatewayConfig = "../../deploy/fleet/direct/config.yaml"
	// simulatedName is what each agent replaces by its own name.
	simulatedName = "agent-00000"
)

var (
	gatewayAgents   = testutil.Size(1000, 50, 50)
	gatewayInterval = testutil.Size(5*time.Second, time.Second, time.Second)
	gatewayRounds   = testutil.Size(12, 2, 2)
	gatewayRecorded = testutil.Size(6, 2, 2) // requests
	// gatewayRates are samples a second and CPU of what is recorded: by default on this
	// machine, and as many samples as a host has with so many more CPUs.
	gatewayRates = testutil.Size([]int{19, 19 * 24}, []int{97}, []int{97})
)

// gatewayMemoryGrowth is what may be added to the memory that a gateway has in the middle of
// a run until its end.
const gatewayMemoryGrowth = 1.25

// TestBenchGateway replays what a real agent has sent, as of many agents, against one gateway
// with the configuration of deploy/fleet: at their pace, and as fast as it goes, and that
// without batches, too. Nothing may be lost, and the gateway's memory may not grow.
func TestBenchGateway(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	printMachine(t)
	dir := t.TempDir()
	files := make([]string, len(gatewayRates))
	t.Run("record", func(t *testing.T) {
		startLoad(t, "writer-v1-lib", "--labels", "4") // which ends with this
		for i, rate := range gatewayRates {
			files[i] = filepath.Join(dir, strconv.Itoa(rate))
			recordAgent(t, rate, files[i])
		}
	})
	fmt.Printf("%d agents\n%-34s %9s %10s %12s %11s %14s %18s %8s\n", gatewayAgents, "samples a request, way",
		"requests", "requests/s", "samples/s", "CPU/1,000", "bytes a sample", "memory MiB", "slowest")
	for _, file := range files {
		for _, way := range []gatewayWay{
			{name: "every " + gatewayInterval.String(), interval: gatewayInterval, batches: true},
			{name: "as fast as it goes", batches: true},
			{name: "as fast as it goes, no batches"},
		} {
			fmt.Println(measureGateway(t, file, way))
		}
	}
}

// A gatewayWay is how agents send, and if the gateway puts their requests together.
type gatewayWay struct {
	name     string
	interval time.Duration
	batches  bool
}

// recordedConfig is an agent that sends to this test, with a name that can be replaced.
const recordedConfig = `
receivers:
  custom_labels: {samples_per_second: %d, report_interval: %s}
processors:
  resource: {attributes: [{key: host.name, value: %s, action: upsert}]}
exporters:
  otlp_grpc: {endpoint: %q, compression: none, tls: {insecure: true}}
service:
  pipelines: {profiles: {receivers: [custom_labels], processors: [resource], exporters: [otlp_grpc]}}
  telemetry: {metrics: {level: none}, logs: {encoding: json}}
`

// recordAgent runs a real agent and writes a file with its requests.
func recordAgent(t *testing.T, rate int, file string) {
	t.Helper()
	r := &recorder{enough: make(chan struct{})}
	address := r.start(t)
	c := startCollector(t, fmt.Sprintf(recordedConfig, rate, gatewayInterval, simulatedName, address))
	select {
	case <-r.enough:
	case <-time.After(collectorTimeout + 10*gatewayInterval):
		require.Fail(t, "no requests", c.output.String())
	}
	c.stop()
	require.NoError(t, os.WriteFile(file, r.file, 0o600))
}

// A recorder keeps requests as they came, but for the first, for which processes are not
// known yet.
type recorder struct {
	mu       sync.Mutex
	requests int
	file     []byte
	enough   chan struct{}
}

func (r *recorder) start(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(64<<20), grpc.ForceServerCodec(asItIs{}), grpc.UnknownServiceHandler(r.export))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	return listener.Addr().String()
}

func (r *recorder) export(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.requests > 1 && r.requests <= 1+gatewayRecorded {
		r.file = append(binary.BigEndian.AppendUint32(r.file, uint32(len(request))), request...)
		if r.requests == 1+gatewayRecorded {
			close(r.enough)
		}
	}
	return stream.SendMsg(&[]byte{})
}

// asItIs hands over messages without decoding them.
type asItIs struct{}

func (asItIs) Name() string { return "raw" }

func (asItIs) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (asItIs) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

// gatewayFor is the configuration of deploy/fleet with the memory of its pod, on this machine
// and without TLS.
func gatewayFor(t *testing.T, address string, way gatewayWay) string {
	t.Helper()
	text, err := os.ReadFile(gatewayConfig)
	require.NoError(t, err)
	retrieved, err := confmap.NewRetrievedFromYAML(text)
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	conf.Delete("receivers::otlp::protocols::grpc::tls")
	if !way.batches {
		conf.Delete("exporters::otlp_grpc::sending_queue::batch")
	}
	require.NoError(t, conf.Merge(confmap.NewFromStringMap(map[string]any{
		"receivers":  map[string]any{"otlp": map[string]any{"protocols": map[string]any{"grpc": map[string]any{"endpoint": address}}}},
		"processors": map[string]any{"memory_limiter": map[string]any{"check_interval": "1s", "limit_mib": 1536, "spike_limit_mib": 400}},
		"exporters":  map[string]any{"otlp_grpc": map[string]any{"tls": map[string]any{"insecure": true}}},
		"service":    map[string]any{"telemetry": map[string]any{"metrics": map[string]any{"level": "none"}, "logs": map[string]any{"encoding": "json"}}},
	})))
	out, err := yaml.Marshal(conf.ToStringMap())
	require.NoError(t, err)
	return string(out)
}

// A replayed is what the program that plays agents says.
type replayed struct {
	Requests int     `json:"requests"`
	Samples  int     `json:"samples"`
	Arrived  int     `json:"arrived"`
	Batches  int     `json:"batches"`
	Bytes    float64 `json:"bytes"`
	Wire     float64 `json:"wire"`
	Again    int     `json:"again"`
	Seconds  float64 `json:"seconds"`
	Slowest  float64 `json:"slowest"`
}

func measureGateway(t *testing.T, file string, way gatewayWay) string {
	t.Helper()
	address, backend := unusedAddress(t), unusedAddress(t)
	t.Setenv("BACKEND", backend)
	t.Setenv("GOMEMLIMIT", "1600MiB")
	gateway := startCommand(t, []string{gatewayPath}, gatewayFor(t, address, way))
	defer gateway.stop()
	before := cpuTime(t, gateway.pid())
	memory := watchMemory(t, gateway.pid())
	agents := exec.Command(agentsPath, "-target", address, "-backend", backend, "-requests", file, "-name", simulatedName,
		"-agents", strconv.Itoa(gatewayAgents), "-rounds", strconv.Itoa(gatewayRounds), "-interval", way.interval.String())
	agents.Stderr = os.Stderr
	said, err := agents.Output()
	used := cpuTime(t, gateway.pid()) - before
	middle, end := memory()
	require.NoError(t, err, "%s", gateway.output.String())
	var r replayed
	require.NoError(t, json.Unmarshal(said, &r))
	require.Equal(t, gatewayAgents*gatewayRounds, r.Requests)
	require.Equal(t, r.Samples, r.Arrived, "samples that were acknowledged, and those that arrived; %d requests were sent again", r.Again)
	if testutil.Full() {
		assert.LessOrEqual(t, end, gatewayMemoryGrowth*middle, "MiB of memory in the last quarter, and in the second")
	}
	samples := float64(r.Samples)
	return fmt.Sprintf("%-34s %9d %10.0f %12.0f %8.2f ms %14s %18s %6.1f s; lost 0, %d sent again, %d batches",
		fmt.Sprintf("%d, %s", r.Samples/r.Requests, way.name), r.Requests, float64(r.Requests)/r.Seconds, samples/r.Seconds,
		used.Seconds()*1e6/samples, fmt.Sprintf("%.0f, zstd %.1f", r.Bytes/samples, r.Wire/samples),
		fmt.Sprintf("%.0f, then %.0f", middle, end), r.Slowest, r.Again, r.Batches)
}

// watchMemory samples the resident memory of a process in MiB until its result is asked for:
// the most in the second quarter, and in the last.
func watchMemory(t *testing.T, pid int) (result func() (middle, end float64)) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	var seen []float64
	go func() {
		defer close(stopped)
		for {
			seen = append(seen, float64(readResidence(t, pid).total)/mib)
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return func() (middle, end float64) {
		close(stop)
		<-stopped
		n := len(seen)
		return slices.Max(seen[n/4 : max(n/2, n/4+1)]), slices.Max(seen[n*3/4:])
	}
}

func unusedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}
