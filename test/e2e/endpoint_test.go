//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // the exporter compresses
)

const maxRequestBytes = 64 << 20

// An endpoint receives OTLP profiles by gRPC for a sink.
type endpoint struct {
	pprofileotlp.UnimplementedGRPCServer
	sink *sink
}

// startEndpoint serves until the end of the test and returns its address.
func startEndpoint(t *testing.T, out *sink) string {
	t.Helper()
	return startEndpoints(t, out, nil)
}

// startEndpoints receives metrics at the same address, too, unless there is no sink for them.
func startEndpoints(t *testing.T, out *sink, metrics *metricSink) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxRequestBytes))
	pprofileotlp.RegisterGRPCServer(server, &endpoint{sink: out})
	if metrics != nil {
		pmetricotlp.RegisterGRPCServer(server, &metricsEndpoint{sink: metrics})
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	return listener.Addr().String()
}

// Export implements the server. The sink reads the request as it was decoded:
// marshalling would change it.
func (e *endpoint) Export(ctx context.Context, r pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	return pprofileotlp.NewExportResponse(), e.sink.ConsumeProfiles(ctx, r.Profiles())
}
