//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// otlpServer is a gRPC server of OTLP with the limits that gRPC has by default, as the
// collector's.
type otlpServer struct {
	pprofileotlp.UnimplementedGRPCServer
	mu        sync.Mutex
	byUser    map[int64]int // samples
	intervals map[uint64]*otlpInterval
}

// otlpInterval is what came of one interval.
type otlpInterval struct{ requests, contexts int }

// Export implements pprofileotlp.GRPCServer.
func (s *otlpServer) Export(_ context.Context, req pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var interval *otlpInterval
	for _, rp := range req.Profiles().ResourceProfiles().All() {
		uid, _ := rp.Resource().Attributes().Get("process.real_user.id")
		for _, p := range rp.ScopeProfiles().At(0).Profiles().All() {
			end := uint64(p.Time()) + p.DurationNano() // its start is its own
			if interval = s.intervals[end]; interval == nil {
				interval = &otlpInterval{}
				s.intervals[end] = interval
			}
			for _, sample := range p.Samples().All() {
				s.byUser[uid.Int()] += sample.TimestampsUnixNano().Len()
			}
		}
		if rp.Resource().Attributes().Len() > contextAttributes && interval != nil {
			interval.contexts++
		}
	}
	if interval != nil {
		interval.requests++
	}
	return pprofileotlp.NewExportResponse(), nil
}

// otlpClient is the next consumer: it sends what it gets, at once.
type otlpClient struct {
	pprofileotlp.GRPCClient
	mu      sync.Mutex
	refused []error
}

func (c *otlpClient) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (c *otlpClient) ConsumeProfiles(ctx context.Context, p pprofile.Profiles) error {
	_, err := c.Export(ctx, pprofileotlp.NewExportRequestFromProfiles(p))
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.refused = append(c.refused, err)
	}
	return err
}

const (
	// contextAttributes are as many as each context of testdata/hostile/contexts.c has.
	contextAttributes = 58
	contextBytes      = contextAttributes * 1000
	defaultLimit      = 4 << 20 // of gRPC
)

// TestHostileRequests: processes of one user with process contexts that together are more
// than a request may be. No sample is lost, of no user, at a server with gRPC's default limit.
func TestHostileRequests(t *testing.T) {
	testutil.RequireBPF(t)
	processes := size(250, 120, 120)
	contexts := compileProgram(t, "../../testdata/hostile/contexts.c")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &otlpServer{byUser: map[int64]int{}, intervals: map[uint64]*otlpInterval{}}
	serving := grpc.NewServer()
	pprofileotlp.RegisterGRPCServer(serving, server)
	var served sync.WaitGroup
	served.Go(func() { _ = serving.Serve(listener) })
	t.Cleanup(func() { serving.Stop(); served.Wait() })
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // after the receiver has ended
	client := &otlpClient{GRPCClient: pprofileotlp.NewGRPCClient(conn)}

	cmd := exec.Command(contexts, strconv.Itoa(processes))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: attacker, Gid: attacker},
	}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	dir := testutil.BuildWriters(t)
	startUser(t, dir+"/writer-v1-exe", quietUser, 0, "spin", "--seconds", "300")
	r := startReceiver(t, client, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 997
		c.ReportInterval = 5 * time.Second
		c.MaxMemoryBytes = slowConsumerMemory
	}, slowConsumer)
	most := otlpInterval{}
	enough := func() bool {
		server.mu.Lock()
		defer server.mu.Unlock()
		for _, i := range server.intervals {
			if i.contexts > most.contexts {
				most = *i
			}
		}
		client.mu.Lock()
		defer client.mu.Unlock()
		return most.contexts*contextBytes > defaultLimit && server.byUser[quietUser] > goodEnough || len(client.refused) > 0
	}
	assert.Eventually(t, enough, 4*time.Minute, 100*time.Millisecond)
	_ = cmd.Process.Kill()
	r.stop()
	account := r.account()
	received := 0
	for _, n := range server.byUser {
		received += n
	}
	fmt.Printf("of %d processes with a context of %d bytes %d in one interval, in %d requests; %d samples, %d of them of another user; refused: %d requests\n",
		processes, contextBytes, most.contexts, most.requests, received, server.byUser[quietUser], len(client.refused))
	require.Empty(t, client.refused)
	require.Greater(t, most.requests, 1)
	require.EqualValues(t, received, account["emitted"])
	require.Zero(t, account["dropped_refused"]+account["dropped_too_large"]+account["dropped_pending_full"])
	requireClosed(t, account)
}
