//go:build linux && (amd64 || arm64)

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// TestFleet runs agents and gateways with the configurations of deploy/fleet, with Kafka
// between two gateways and without. Each gateway is killed while requests are on their way:
// what arrives is what the agents have emitted, of each tenant, to the sample. Then it shows
// that settings which lose data do so: those that deploy/fleet does not have.
func TestFleet(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	testutil.BuildWriters(t)
	testutil.Start(t, "writer-v1-lib", "shares", "--seconds", "600")
	var figures []string
	t.Run("direct", func(t *testing.T) { figures = append(figures, testFleetDirect(t)) })
	t.Run("kafka", func(t *testing.T) { figures = append(figures, testFleetKafka(t)) })
	fmt.Println(strings.Join(figures, "; "))
}

func testFleetDirect(t *testing.T) string {
	f := newFleet(t)
	gateway := f.startGateway("direct/config.yaml")
	f.startAgents("agent-1", "agent-2")
	f.awaitSamples()
	f.settle()
	f.requireOnce()
	f.requireMetrics("direct/config.yaml", "otelcol_receiver_accepted_profile_samples", "otelcol_exporter_sent_profile_samples")

	// The backend has taken a batch and has not said so yet.
	f.gate.hold()
	gateway.await("a batch at the backend", f.gate.holds)
	f.kill(gateway)
	f.gate.release()
	gateway = f.startGateway("direct/config.yaml")
	f.awaitSent(2) // an agent that ends while it tries again loses what it has
	f.settle()
	figure := f.finish("agents, gateway", 1)
	gateway.stop()
	return figure
}

func testFleetKafka(t *testing.T) string {
	f := newFleet(t)
	broker := f.startBroker("agent-1")
	back := f.startGateway("kafka/from-kafka.yaml")
	front := f.startGateway("kafka/to-kafka.yaml")
	f.startAgents("agent-1", "agent-2")
	f.awaitSamples()
	f.settle()
	f.requireOnce()
	f.requireMetrics("kafka/to-kafka.yaml", "otelcol_receiver_accepted_profile_samples", "otelcol_exporter_sent_profile_samples")
	f.requireMetrics("kafka/from-kafka.yaml", "otelcol_kafka_receiver_offset_lag", "otelcol_exporter_sent_profile_samples")

	// The broker has requests and has not said so yet.
	broker.signal(syscall.SIGSTOP)
	f.awaitSent(2)
	f.kill(front)
	broker.signal(syscall.SIGCONT)
	front = f.startGateway("kafka/to-kafka.yaml")
	f.settle()
	byFront, _ := f.got.again()

	// The backend has taken a request and has not said so yet.
	f.gate.hold()
	back.await("a request at the backend", f.gate.holds)
	f.kill(back)
	f.gate.release()
	back = f.startGateway("kafka/from-kafka.yaml")
	f.settle()
	figure := f.finish("agents, gateway, Kafka, gateway", 2)
	again, _ := f.got.again()
	require.Greater(t, again, byFront, "nothing was on its way when the gateway was killed")
	fmt.Printf("the gateway to Kafka was killed: %d samples came twice; the one from Kafka: %d\n", byFront, again-byFront)

	request := f.sent.requests("grpc")[0]
	f.requireNoAnswer(broker, front, request)
	f.requireLossWithQueue(broker, request)
	f.requireLossOfDictionary(request)
	back.stop()
	broker.stop()
	return figure
}

func (f *fleet) startAgents(names ...string) {
	f.t.Helper()
	for _, name := range names {
		f.agents = append(f.agents, f.startAgent(name))
	}
}

// awaitSamples waits until samples of each tenant have gone all the way.
func (f *fleet) awaitSamples() {
	f.t.Helper()
	enough := size(1000, 40, 20)
	f.agents[0].await("samples of each tenant", func() bool {
		sums := f.got.tenants()
		for _, tenant := range tenantNames {
			if sums[tenant] < enough {
				return false
			}
		}
		return true
	})
}

// awaitSent waits until agents have sent so many requests more.
func (f *fleet) awaitSent(n int) {
	f.t.Helper()
	want := len(f.sent.requests("grpc")) + n*len(f.agents)
	f.agents[0].await("requests", func() bool { return len(f.sent.requests("grpc")) >= want })
}

// settle waits until all that the agents have sent by now has arrived.
func (f *fleet) settle() {
	f.t.Helper()
	f.read.read(f.t, f.sent.requests("grpc"))
	f.agents[0].await("all that was sent", func() bool { return f.got.has(f.read) })
}

// requireOnce: as long as nobody is killed, nothing comes twice.
func (f *fleet) requireOnce() {
	f.t.Helper()
	again, _ := f.got.again()
	require.Zero(f.t, again, "samples that came twice")
}

// finish ends the agents and checks that both ends have the same, and that nothing came
// more often than once and once more for each gateway that was killed.
func (f *fleet) finish(way string, kills int) (figure string) {
	f.t.Helper()
	var accounts []account
	for _, agent := range f.agents {
		agent.stop()
		accounts = append(accounts, agent.accounts()...)
	}
	f.read.read(f.t, f.sent.requests("grpc"))
	require.Eventually(f.t, func() bool { return f.got.has(f.read) }, childStopTimeout, 20*time.Millisecond)
	requireNothingLost(f.t, accounts, len(f.read.samples))
	requireSameEnds(f.t, f.read, f.got)
	again, most := f.got.again()
	require.LessOrEqual(f.t, most, 1+kills)
	return fmt.Sprintf("%s: %d samples at both ends (%s), gateways killed: %d, lost: none, twice: %d",
		way, len(f.read.samples), tenantSums(f.read.tenants()), kills, again)
}

// requireNoAnswer: with the broker away, the gateway acknowledges nothing. It is killed then.
func (f *fleet) requireNoAnswer(broker, front *child, request []byte) {
	f.t.Helper()
	broker.signal(syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
	defer cancel()
	require.Equal(f.t, codes.DeadlineExceeded, status.Code(f.send(ctx, request)), "an answer without Kafka")
	f.kill(front)
	broker.signal(syscall.SIGCONT)
}

// requireLossWithQueue: a queue in memory acknowledges, and is lost with its gateway.
func (f *fleet) requireLossWithQueue(broker *child, request []byte) {
	f.t.Helper()
	broker.signal(syscall.SIGSTOP)
	front := f.startGateway("kafka/to-kafka.yaml", "exporters: {kafka: {sending_queue: {enabled: true}}}")
	require.NoError(f.t, f.send(f.t.Context(), bytes.ReplaceAll(request, []byte("agent-1"), []byte("agent-8"))))
	f.kill(front)
	broker.signal(syscall.SIGCONT)
	front = f.startGateway("kafka/to-kafka.yaml")
	require.NoError(f.t, f.send(f.t.Context(), bytes.ReplaceAll(request, []byte("agent-1"), []byte("agent-9"))))
	front.await("the second request", func() bool { return f.got.of("agent-9") > 0 })
	require.Zero(f.t, f.got.of("agent-8"), "a queue in memory outlived its process")
	front.stop()
	fmt.Println("a queue in the gateway's memory acknowledged a request, and lost it with the gateway")
}

// requireLossOfDictionary: topic_from_attribute of the Kafka exporter takes a request apart,
// and nothing can be read of its samples any more.
func (f *fleet) requireLossOfDictionary(request []byte) {
	f.t.Helper()
	whole := pprofileotlp.NewExportRequest()
	require.NoError(f.t, whole.UnmarshalProto(request))
	back := startCapture(f.t)
	front := f.startGateway("kafka/to-kafka.yaml", "exporters: {kafka: {topic_from_attribute: "+fleetAgent+"}}")
	f.back = back.grpc
	other := f.startGateway("kafka/from-kafka.yaml", "receivers: {kafka: {group_id: other, profiles: {topics: [agent-1]}}}")
	require.NoError(f.t, f.send(f.t.Context(), request))
	samples, attributes, functions := 0, 0, 0
	other.await("all samples", func() bool {
		samples, attributes, functions = 0, 0, 0
		for _, data := range back.requests("grpc") {
			part := pprofileotlp.NewExportRequest()
			require.NoError(f.t, part.UnmarshalProto(data))
			samples += part.Profiles().SampleCount()
			attributes += part.Profiles().Dictionary().AttributeTable().Len()
			functions += part.Profiles().Dictionary().FunctionTable().Len()
		}
		return samples == whole.Profiles().SampleCount()
	})
	require.Positive(f.t, samples)
	require.Zero(f.t, attributes+functions, "topic_from_attribute keeps dictionaries now: say so in docs/fleet.md")
	other.stop()
	front.stop()
	fmt.Printf("topic_from_attribute: %d samples arrived, none with a label or a function\n", samples)
}
