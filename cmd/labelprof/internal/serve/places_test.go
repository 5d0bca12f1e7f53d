// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/input"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
)

// free is how many places nobody has.
func (s *server) free() int {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	return s.places.free
}

// Connections have places in turn, however many requests each has.
func TestPlacesInTurn(t *testing.T) {
	p := places{free: 1}
	var many, one conn
	require.NoError(t, p.take(t.Context(), &one))
	require.NoError(t, func() error { p.give(); return p.take(t.Context(), &many) }())
	served := make(chan *conn)
	wait := func(c *conn, n int) {
		for range n {
			p.mu.Lock()
			before := len(p.waiting)
			p.mu.Unlock()
			go func() {
				if p.take(t.Context(), c) == nil {
					served <- c
				}
			}()
			require.Eventually(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.waiting) > before }, time.Minute, time.Millisecond)
		}
	}
	wait(&many, 3)
	wait(&one, 2)
	for _, c := range []*conn{&one, &many, &one, &many, &many} {
		p.give()
		require.Same(t, c, <-served)
	}

	// Who gives up waiting leaves the place to others, also if it comes just then.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.take(ctx, &one), context.Canceled)
	require.False(t, p.wanted())
	p.give()
	require.Equal(t, 1, p.free)
}

// TestGivenUpRequest: what a client has given up while another request was taken in is not counted: it comes again.
func TestGivenUpRequest(t *testing.T) {
	took, goOn := make(chan struct{}, 2), make(chan struct{})
	var batches atomic.Int32
	consume := func(pprofile.Profiles) {
		batches.Add(1)
		took <- struct{}{}
		<-goOn
	}
	srv, err := newServer("127.0.0.1:0", consume, input.NewDecoder(64<<20), patience{request: time.Hour, idle: time.Hour, pause: time.Hour})
	require.NoError(t, err)
	srv.serve()
	conn, err := grpc.NewClient(srv.addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	send := func(ctx context.Context) grpc.ClientStream {
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, "/"+profilesService+"/Export", grpc.ForceCodecV2(rawCodec{}))
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(profiletest.Empty(1, 1)))
		require.NoError(t, stream.CloseSend())
		return stream
	}
	first := send(t.Context())
	<-took
	ctx, giveUp := context.WithCancel(t.Context())
	second := send(ctx)
	require.Eventually(t, func() bool { return srv.free() == maxReceiving-2 }, time.Minute, time.Millisecond)
	time.Sleep(50 * time.Millisecond) // it is received, and waits
	giveUp()
	require.Equal(t, codes.Canceled, status.Code(second.RecvMsg(new([]byte))))
	time.Sleep(time.Second) // the server knows
	close(goOn)
	require.NoError(t, first.RecvMsg(new([]byte)))
	require.Eventually(t, func() bool { return srv.free() == maxReceiving }, time.Minute, time.Millisecond)
	require.EqualValues(t, 1, batches.Load())
	require.NoError(t, conn.Close())
	require.NoError(t, srv.stop())
}

// Who has a place and brings nothing gives it up when others wait, and keeps it otherwise.
func TestSilentRequest(t *testing.T) {
	const pause = 50 * time.Millisecond
	var batches atomic.Int32
	consume := func(pprofile.Profiles) { batches.Add(1) }
	srv, err := newServer("127.0.0.1:0", consume, input.NewDecoder(64<<20), patience{request: time.Hour, idle: time.Hour, pause: pause})
	require.NoError(t, err)
	srv.serve()
	conn, err := grpc.NewClient(srv.addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	begin := func() grpc.ClientStream {
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, "/"+profilesService+"/Export", grpc.ForceCodecV2(rawCodec{}))
		require.NoError(t, err)
		return stream
	}
	late := begin()
	require.Eventually(t, func() bool { return srv.free() == maxReceiving-1 }, time.Minute, time.Millisecond)
	time.Sleep(4 * pause)
	require.NoError(t, late.SendMsg(profiletest.Empty(1, 1)))
	require.NoError(t, late.CloseSend())
	require.NoError(t, late.RecvMsg(new([]byte)))
	require.EqualValues(t, 1, batches.Load())

	var silent []grpc.ClientStream
	ended := make(chan codes.Code, maxReceiving)
	for range maxReceiving {
		silent = append(silent, begin())
	}
	require.Eventually(t, func() bool { return srv.free() == 0 }, time.Minute, time.Millisecond)
	export(t, srv.addr().String())
	require.EqualValues(t, 2, batches.Load())
	for range maxReceiving { // one of these two
		go func(stream grpc.ClientStream) { ended <- status.Code(stream.RecvMsg(new([]byte))) }(silent[0])
		silent = silent[1:]
	}
	require.Equal(t, codes.Canceled, <-ended)
	require.NoError(t, conn.Close())
	require.NoError(t, srv.stop())
}
