// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/input"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// silent opens connections that say what a client says first, and no more.
func silent(t *testing.T, address string, n int, first string) []net.Conn {
	t.Helper()
	var conns []net.Conn
	for range n {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = io.WriteString(c, first)
		require.NoError(t, err)
		conns = append(conns, c)
	}
	return conns
}

// ended waits until the other side has ended so many of some connections.
func ended(t *testing.T, conns []net.Conn, n int) {
	t.Helper()
	over := make(chan error, len(conns))
	for _, c := range conns {
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		go func() {
			_, err := io.Copy(io.Discard, c)
			over <- err
		}()
	}
	for range n {
		require.NotErrorIs(t, <-over, os.ErrDeadlineExceeded)
	}
}

// An HTTP/2 client's preface and its empty settings.
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// TestSilentConnections: they keep nobody out.
func TestSilentConnections(t *testing.T) {
	s, address := startServe(t)
	conns := silent(t, address, 3*maxConnections, http2Preface)
	export(t, address)
	ended(t, conns, 2*maxConnections)
	page := s.page(t)
	conns = silent(t, page, 3*maxPageConnections, "GET / HTTP/1.1\r\n")
	require.Contains(t, get(t, page), "<html")
	ended(t, conns, 2*maxPageConnections)
	s.cancel()
	require.Zero(t, s.wait(t))
}

// get asks for the page on a connection of its own.
func get(t *testing.T, address string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	_, err = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", address)
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(answer)
}

// TestPatience: a request that does not come gives its place up, and a connection without
// requests ends.
func TestPatience(t *testing.T) {
	var hits int64
	consume := func(profiles pprofile.Profiles) { otlp.Walk(profiles, func(s *sample.Sample) { hits += s.Hits }) }
	srv, err := newServer("127.0.0.1:0", consume, input.NewDecoder(64<<20), patience{request: 5 * time.Second, idle: 200 * time.Millisecond, pause: time.Hour})
	require.NoError(t, err)
	srv.serve()
	address := srv.addr().String()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	var begun []grpc.ClientStream
	for range maxReceiving { // a request that is begun and no more
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, "/"+profilesService+"/Export", grpc.ForceCodecV2(rawCodec{}))
		require.NoError(t, err)
		begun = append(begun, stream)
	}
	for _, stream := range begun {
		require.Error(t, stream.RecvMsg(new([]byte)))
	}
	require.Eventually(t, func() bool { return srv.free() == maxReceiving }, time.Minute, time.Millisecond)
	export(t, address)

	ended(t, silent(t, address, 1, http2Preface), 1)
	require.NoError(t, srv.stop())
	require.EqualValues(t, 100, hits)
}
