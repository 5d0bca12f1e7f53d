// SPDX-License-Identifier: Apache-2.0

package push

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/ingest"
)

// clientOf is a client that does not wait.
func clientOf(t *testing.T, server string) *client {
	t.Helper()
	c, err := newClient(&settings{server: server, timeout: time.Minute, patience: 10 * time.Second}, secret{})
	require.NoError(t, err)
	c.wait = func(int) time.Duration { return time.Millisecond }
	return c
}

// partOf is a part with one sample.
func partOf() *part {
	p := newPart(partKey{service: "shop"}, 0, 1e9)
	p.span(&sample.Batch{StartNs: 1e9, EndNs: 2e9})
	p.profile.Add(&sample.Sample{Hits: 1, Ns: 1, PeriodNs: 1, Process: &sample.Process{}, Stack: []*sample.Location{{Address: 1}}})
	return p
}

// answering listens, and has each connection answered after its first bytes; n counts them.
func answering(t *testing.T, answer func(net.Conn)) (url string, n *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	n = &atomic.Int64{}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			_, _ = conn.Read(make([]byte, 1<<16))
			answer(conn)
			conn.Close()
		}
	}()
	return "http://" + l.Addr().String(), n
}

// bound is an address at which nobody listens, nor can anybody else, until listen is called.
func bound(t *testing.T) (address string, listen func() net.Listener) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	unix.CloseOnExec(fd)
	socket := os.NewFile(uintptr(fd), "socket")
	t.Cleanup(func() { socket.Close() })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprint("127.0.0.1:", name.(*unix.SockaddrInet4).Port), func() net.Listener {
		require.NoError(t, unix.Listen(fd, 1))
		l, err := net.FileListener(socket)
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
}

// TestSend: what a busy server has not taken is sent again, what it refuses is not, and no
// number of answers makes it go on for ever.
func TestSend(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []int // the last one goes on
		tries   int64
		err     string
	}{
		"taken":             {[]int{200}, 1, ""},
		"no content":        {[]int{204}, 1, ""},
		"busy":              {[]int{429, 503, 500, 200}, 4, ""},
		"always busy":       {[]int{503}, maxTries, "status 503: no text (the last of 12 tries)"},
		"refused":           {[]int{422}, 1, "status 422"},
		"bad":               {[]int{400}, 1, "status 400"},
		"not allowed":       {[]int{401}, 1, "not allowed"},
		"too large":         {[]int{413}, 1, "too large"},
		"not there":         {[]int{404}, 1, "status 404"},
		"never":             {[]int{501}, 1, "status 501"},
		"nobody knows":      {[]int{504}, 1, "status 504"},
		"moved":             {[]int{301}, 1, "it is elsewhere"},
		"busy, then refuse": {[]int{502, 422}, 2, "status 422"},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(tc.answers[min(int(n.Add(1)), len(tc.answers))-1])
			}))
			defer server.Close()
			err := clientOf(t, server.URL).send(t.Context(), partOf())
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
			}
			require.Equal(t, tc.tries, n.Load())
		})
	}
}

// busyOnce is a server that is busy at the first request, and asks to be asked again after so long.
func busyOnce(t *testing.T, after string) (server *httptest.Server, n *atomic.Int64) {
	t.Helper()
	n = &atomic.Int64{}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	return server, n
}

// TestSendRetryAfter: a server is asked again when it says, or not at all where that is later than
// patience allows.
func TestSendRetryAfter(t *testing.T) {
	server, n := busyOnce(t, "1")
	began := time.Now()
	require.NoError(t, clientOf(t, server.URL).send(t.Context(), partOf()))
	require.EqualValues(t, 2, n.Load())
	require.GreaterOrEqual(t, time.Since(began), time.Second)

	for after, want := range map[string]string{"11": "11s", "1000": "16m40s", "4000000000": "1111111h6m40s"} {
		server, n := busyOnce(t, after)
		require.EqualError(t, clientOf(t, server.URL).send(t.Context(), partOf()),
			"status 503: no text; it asks to wait "+want+", which is longer than --patience")
		require.EqualValues(t, 1, n.Load(), after)
	}
	// Longer than what is waited by itself, and within patience: it waits, here until it is ended.
	server, n = busyOnce(t, "30")
	c := clientOf(t, server.URL)
	c.patience = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	c.wait = func(int) time.Duration { cancel(); return time.Millisecond }
	require.ErrorIs(t, c.send(ctx, partOf()), context.Canceled)
	require.EqualValues(t, 1, n.Load())

	require.Equal(t, 4_000_000_000*time.Second, retryAfter("4000000000"))
	require.Equal(t, 3*time.Second, retryAfter("3"))
	require.Zero(t, retryAfter("-3"))
	require.Zero(t, retryAfter("soon"))
	require.Zero(t, retryAfter("Sun, 06 Nov 1994 08:49:37 GMT"))
}

// TestSendPatience: waits are bounded, patience ends, and a signal ends them both.
func TestSendPatience(t *testing.T) {
	for n := 1; n < 100; n++ {
		require.LessOrEqual(t, backoff(n), maxWait)
		require.GreaterOrEqual(t, backoff(n), minWait/2)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer server.Close()
	c := clientOf(t, server.URL)
	c.wait = func(n int) time.Duration { return time.Duration(n-1) * 11 * time.Second }
	require.EqualError(t, c.send(t.Context(), partOf()), "status 503: no text (the last of 2 tries)")

	ctx, cancel := context.WithCancel(t.Context())
	c.wait = func(int) time.Duration { cancel(); return time.Second }
	require.ErrorIs(t, c.send(ctx, partOf()), context.Canceled)
}

// TestSendWithoutServer: where nobody listens, it is tried again.
func TestSendWithoutServer(t *testing.T) {
	address, listen := bound(t)
	s := &ingest.Server{}
	c := clientOf(t, "http://"+address)
	tries := 0
	c.wait = func(int) time.Duration {
		if tries++; tries == 2 {
			l := listen()
			go func() { _ = http.Serve(l, s) }() //nolint:gosec // of a test
		}
		return time.Millisecond
	}
	require.NoError(t, c.send(t.Context(), partOf()))
	require.Len(t, s.Taken(), 1)
	require.Equal(t, 2, tries)
}

// TestSendWithoutConnection: what never had a connection was not taken, and is tried again: where the handshake
// does not end, the server goes away meanwhile, or nobody listens at the proxy.
func TestSendWithoutConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // says nothing
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	gone, _ := bound(t)
	closing, _ := answering(t, func(net.Conn) {})
	for name, tc := range map[string]struct {
		server string
		proxy  *url.URL
	}{
		"handshake": {server: "https://" + l.Addr().String()},
		"closed":    {server: strings.Replace(closing, "http:", "https:", 1)},
		"proxy":     {server: "https://pyroscope.example.com", proxy: &url.URL{Scheme: "http", Host: gone}},
	} {
		t.Run(name, func(t *testing.T) {
			c := clientOf(t, tc.server)
			c.timeout = 100 * time.Millisecond
			c.http.Transport.(*http.Transport).Proxy = http.ProxyURL(tc.proxy)
			ctx, cancel := context.WithCancel(t.Context())
			tries := 0
			c.wait = func(int) time.Duration {
				if tries++; tries == 2 {
					cancel()
					return time.Second
				}
				return time.Millisecond
			}
			require.ErrorIs(t, c.send(ctx, partOf()), context.Canceled)
			require.Equal(t, 2, tries)
		})
	}
}

// TestSendHostile: answers that break off, never come, are huge or act upon terminals end in
// an error or in nothing, and nothing is sent twice.
func TestSendHostile(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		err    string
	}{
		"no answer":          {"", "nobody knows"},
		"half a status":      {"HTTP/1.1 20", "nobody knows"},
		"no HTTP":            {"SSH-2.0-OpenSSH_9.2\r\n", "nobody knows"},
		"endless headers":    {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 4<<20), "nobody knows"},
		"truncated, taken":   {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhal", ""},
		"truncated, refused": {"HTTP/1.1 422 No\r\nContent-Length: 100\r\n\r\nhal", "status 422: hal"},
		"web page":           {"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 6\r\n\r\n<html>", "web page"},
		"terminal":           {"HTTP/1.1 400 No\r\nContent-Length: 9\r\n\r\n\x1b[2J\n\xff\u202e", "labelprof push: status 400: \\x1b[2J ?\\u202e\n"},
		"huge":               {"HTTP/1.1 400 No\r\n\r\n" + strings.Repeat("y", 8<<20), "status 400: " + strings.Repeat("y", shownBytes) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			url, n := answering(t, func(conn net.Conn) { _, _ = io.WriteString(conn, tc.answer) })
			err := clientOf(t, url).send(t.Context(), partOf())
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				var stderr bytes.Buffer
				require.Equal(t, command.ExitError, command.ExitCode("push", err, &stderr))
				require.Contains(t, stderr.String(), tc.err)
				require.Less(t, stderr.Len(), 1000)
			}
			require.EqualValues(t, 1, n.Load())
		})
	}
}

// TestSendSilent: a server that says nothing costs a timeout, and nothing is sent twice.
func TestSendSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c := clientOf(t, "http://"+l.Addr().String())
	c.timeout = 100 * time.Millisecond
	require.ErrorContains(t, c.send(t.Context(), partOf()), "nobody knows")
}

// TestSendElsewhere: a profile, and the token, go to the server that was named and no other.
func TestSendElsewhere(t *testing.T) {
	s, url := serve(t)
	server := httptest.NewServer(http.RedirectHandler(url+"/ingest?"+query(partOf()), http.StatusFound))
	defer server.Close()
	require.ErrorContains(t, clientOf(t, server.URL).send(t.Context(), partOf()), "it is elsewhere")
	require.Empty(t, s.Taken())
	p := partOf()
	p.end = 2e9 + 1
	require.Contains(t, query(p), "until=3")
}

// TestSendReset: a connection that breaks is no word that the profile was not taken.
func TestSendReset(t *testing.T) {
	url, n := answering(t, func(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) })
	require.ErrorContains(t, clientOf(t, url).send(t.Context(), partOf()), "nobody knows")
	require.EqualValues(t, 1, n.Load())
}
