// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // exporters compress
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/input"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"
)

// profilesService is the service of OTLP; its one method is Export.
const profilesService = "opentelemetry.proto.collector.profiles.v1development.ProfilesService"

// Bounds of what may be on its way at once.
const (
	maxConnections = 64
	maxStreams     = 2 // of a connection
	maxReceiving   = 2 // requests that are taken off the wire
	// Who brings less than leastBytes of a request within patience.pause gives its place up while others wait.
	leastBytes = 64 << 10
	// A connection can have so many bytes on their way that nobody has asked for yet.
	windowBytes    = 256 << 10
	maxHeaderBytes = 16 << 10
	drainTimeout   = 3 * time.Second
	// readTimeout is how long a file that is being read has when the command is to end.
	readTimeout = 500 * time.Millisecond
	// The server cannot stop while a client is silent in the handshake.
	handshakeTimeout = 3 * time.Second
)

// patience is how long others are waited for.
type patience struct {
	request time.Duration // until all of it is there
	idle    time.Duration // a connection without a request
	pause   time.Duration // some bytes of a request, while others wait for its place
}

func defaultPatience() patience {
	return patience{request: 20 * time.Second, idle: time.Minute, pause: time.Second}
}

// server receives OTLP profiles by gRPC. A request is only taken off the wire when there
// is a place for it, and only decoded when what that takes is known: gRPC decodes before it
// calls the handler of a single request, so this is the handler of a stream of them.
type server struct {
	consume  func(pprofile.Profiles)
	decoder  *input.Decoder
	wait     patience
	places   places // of requests that are taken off the wire
	listener *listener
	grpc     *grpc.Server
	served   chan error // nil: it does not serve
}

// newServer listens. Clients wait until it serves.
func newServer(address string, consume func(pprofile.Profiles), d *input.Decoder, wait patience) (*server, error) {
	l, err := listen(address, maxConnections)
	if err != nil {
		return nil, fmt.Errorf("listen for profiles (--listen chooses another address, which must be the endpoint of the collector's exporter, too): %w", err)
	}
	srv := &server{
		consume:  consume,
		decoder:  d,
		wait:     wait,
		places:   places{free: maxReceiving},
		listener: l,
		grpc: grpc.NewServer(grpc.MaxRecvMsgSize(int(d.Memory().Message(maxReceiving))), grpc.ForceServerCodecV2(rawCodec{}),
			grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(handshakeTimeout),
			grpc.InitialWindowSize(windowBytes), grpc.InitialConnWindowSize(windowBytes), grpc.MaxHeaderListSize(maxHeaderBytes),
			grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: wait.idle}), grpc.InTapHandle(wait.tap),
			grpc.WaitForHandlers(true)), // what they took in is counted
	}
	srv.grpc.RegisterService(&grpc.ServiceDesc{
		ServiceName: profilesService,
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{{StreamName: "Export", Handler: srv.export}},
	}, srv)
	return srv, nil
}

// serve serves in the background.
func (s *server) serve() {
	s.served = make(chan error, 1)
	go func() { s.served <- s.grpc.Serve(s.listener) }()
}

// cancelKey is of the function in the context of a request that ends it.
type cancelKey struct{}

// tap gives each request a deadline, and a function that ends it.
func (p patience) tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cancel := context.WithTimeout(ctx, p.request)
	context.AfterFunc(ctx, cancel)
	return context.WithValue(ctx, cancelKey{}, cancel), nil
}

func (s *server) addr() net.Addr { return s.listener.Addr() }

// export takes in one request.
func (s *server) export(_ any, stream grpc.ServerStream) error {
	from, _ := peer.FromContext(stream.Context())
	c := s.listener.from(from.Addr)
	if c == nil {
		return status.Error(codes.Unavailable, "the connection has ended")
	}
	if err := s.places.take(stream.Context(), c); err != nil {
		return status.FromContextError(err).Err()
	}
	defer s.places.give()
	request, err := s.receive(stream, c)
	if err != nil {
		return err
	}
	var tooLarge *weight.TooLargeError
	var givenUp error // while others were taken in: the client sends it again
	err = s.decoder.Request(request, func(p pprofile.Profiles) {
		if givenUp = stream.Context().Err(); givenUp == nil {
			s.consume(p)
		}
	})
	switch {
	case givenUp != nil:
		return status.FromContextError(givenUp).Err()
	case errors.As(err, &tooLarge):
		return status.Error(codes.ResourceExhausted, err.Error())
	case err != nil:
		return status.Error(codes.InvalidArgument, err.Error())
	}
	response, err := pprofileotlp.NewExportResponse().MarshalProto()
	if err != nil {
		return err
	}
	return stream.SendMsg(response)
}

// receive takes a request off the wire. While others wait, it is ended if it does not come.
func (s *server) receive(stream grpc.ServerStream, c *conn) (request []byte, err error) {
	end, _ := stream.Context().Value(cancelKey{}).(context.CancelFunc)
	received, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(s.wait.pause)
		defer tick.Stop()
		for before := c.read.Load(); ; {
			select {
			case <-received:
				return
			case <-tick.C:
			}
			now := c.read.Load()
			if now-before < leastBytes && s.places.wanted() {
				end()
				return
			}
			before = now
		}
	}()
	err = stream.RecvMsg(&request)
	close(received)
	<-watched
	if err == nil && stream.Context().Err() != nil { // the client sends it again
		err = status.FromContextError(stream.Context().Err()).Err()
	}
	return request, err
}

// stop finishes the requests under way, and gives up those that take too long.
func (s *server) stop() error {
	if s.served == nil {
		return s.listener.Close()
	}
	timer := time.AfterFunc(drainTimeout, s.grpc.Stop)
	s.grpc.GracefulStop()
	timer.Stop()
	if err := <-s.served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // that: before it began
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
