// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // exporters compress
)

// Bounds of what may be on its way at once.
const (
	maxMessageBytes = 64 << 20
	maxConnections  = 8
	maxStreams      = 2 // of a connection
	drainTimeout    = 3 * time.Second
	// The server cannot stop while a client is silent in the handshake.
	handshakeTimeout = 3 * time.Second
)

// server receives OTLP profiles by gRPC.
type server struct {
	pprofileotlp.UnimplementedGRPCServer
	sink     *sink
	listener net.Listener
	grpc     *grpc.Server
	served   chan error
}

// newServer listens and serves in the background.
func newServer(address string, s *sink) (*server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	srv := &server{
		sink:     s,
		listener: listener,
		grpc: grpc.NewServer(grpc.MaxRecvMsgSize(maxMessageBytes),
			grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(handshakeTimeout),
			grpc.WaitForHandlers(true)), // what they took in is counted
		served: make(chan error, 1),
	}
	pprofileotlp.RegisterGRPCServer(srv.grpc, srv)
	go func() { srv.served <- srv.grpc.Serve(netutil.LimitListener(listener, maxConnections)) }()
	return srv, nil
}

func (s *server) addr() net.Addr { return s.listener.Addr() }

// Export takes in one request.
func (s *server) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	s.sink.consume(request.Profiles())
	return pprofileotlp.NewExportResponse(), nil
}

// stop finishes the requests under way, and gives up those that take too long.
func (s *server) stop() error {
	timer := time.AfterFunc(drainTimeout, s.grpc.Stop)
	s.grpc.GracefulStop()
	timer.Stop()
	if err := <-s.served; err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
