//go:build linux && amd64

package realwriters

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	// nodeBuild is where scripts/node-writers.sh puts what it installs.
	nodeBuild = "../../build/realwriters/node"

	nodeRate     = 997 // samples a second
	nodeClients  = 4
	nodeRequests = 20000 // at most
	nodeLoad     = 6 * time.Second

	// clockSlack is how far the log's clock and that of the samples may be apart.
	clockSlack = 200 * time.Microsecond
	// startSlack is how long before the server logs a request its span may have begun.
	startSlack = 20 * time.Millisecond

	// What a version must show to have been tested.
	nodeMinSamples = 300
	nodeMinLinked  = 0.95 // of the samples while a request burned, after nodeFound
	// nodeFound is the time in which the process context must have been found.
	nodeFound = time.Second
)

// TestNode: HTTP servers on the Node.js of three releases, with contexts made by
// dd-trace and by @datadog/pprof alone. The link of each sample is that of the
// request that the server's log has at that instant.
func TestNode(t *testing.T) {
	for _, writer := range []string{"dd-trace", "pprof"} {
		for _, release := range []string{"22", "24", "26"} {
			t.Run(writer+"/"+release, func(t *testing.T) { testNode(t, writer, release) })
		}
	}
}

func testNode(t *testing.T, writer, release string) {
	out := &sink{t: t}
	stop := startReceiver(t, out, func(c *customlabelsreceiver.Config) { c.SamplesPerSecond = nodeRate })
	server := startNode(t, writer, release)
	requests := server.load(t)
	log := server.end(t)
	stop()

	found := log.of["burn"][0].start + uint64(nodeFound)
	var linked, early, missing, between, wrong int
	for _, h := range out.of(server.pid) {
		if h.attrs["thread.id"] != strconv.Itoa(server.pid) {
			require.Empty(t, h.traceID, "a thread that runs no JavaScript")
			continue
		}
		if h.traceID != "" {
			require.Equal(t, "shop-"+writer, h.resource["service.name"])
		}
		burn := log.at(h.timeUnixNano, "burn", clockSlack)
		switch {
		case burn != nil && h.traceID == "" && h.timeUnixNano < found:
			early++
		case burn != nil && h.traceID == "":
			missing++
		case burn != nil:
			linked++
			if h.traceID != burn.traceID || h.spanID != burn.spanID || !burn.matches(&h) {
				wrong++
				t.Logf("%v instead of %+v", h, *burn)
			}
		case h.traceID != "":
			between++
			if !log.active(&h) {
				wrong++
				t.Logf("%v is of no request that was active: %s", h.attrs, log.explain(&h))
			}
		}
	}
	fmt.Printf("%-8s on Node.js %s: %d requests; %d samples while one burned: %d with its link, %d without (and %d in the first second); %d linked samples between; %d mismatches\n",
		writer, release, requests, linked+missing+early, linked, missing, early, between, wrong)
	require.Zero(t, wrong)
	require.Greater(t, linked, nodeMinSamples)
	require.Greater(t, float64(linked)/float64(linked+missing), nodeMinLinked)
	testutil.ReportLabelAssertions(t.Name(), linked+between)
}

// nodeServer is a running server.js.
type nodeServer struct {
	pid  int
	cmd  *exec.Cmd
	in   io.Closer
	url  string
	path string // of its log
}

func startNode(t *testing.T, writer, release string) *nodeServer {
	t.Helper()
	s := &nodeServer{path: filepath.Join(t.TempDir(), "log")}
	args := []string{filepath.Join(nodeBuild, "server.js"), writer, s.path}
	if release == "22" {
		args = slices.Insert(args, 0, "--experimental-async-context-frame") // the default from 24 on
	}
	s.cmd = exec.Command(filepath.Join(nodeBuild, "node_modules", "node"+release, "bin", "node"), args...)
	// Nothing listens there: the tracer keeps its spans to itself.
	s.cmd.Env = append(os.Environ(), "DD_TRACE_OTEL_CTX_ENABLED=true", "DD_TRACE_AGENT_URL=http://127.0.0.1:9")
	s.cmd.Stderr = os.Stderr
	var err error
	s.in, err = s.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start(), "make e2e-real-writers installs what this test runs")
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	s.pid = s.cmd.Process.Pid
	port, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	s.url = "http://127.0.0.1:" + strings.TrimSpace(port)
	return s
}

// load sends requests for a while, a few at a time, and returns how many there were.
func (s *nodeServer) load(t *testing.T) int64 {
	transport := &http.Transport{MaxIdleConnsPerHost: nodeClients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	var sent, failed atomic.Int64
	var clients sync.WaitGroup
	end := time.Now().Add(nodeLoad)
	for range nodeClients {
		clients.Go(func() {
			for time.Now().Before(end) {
				n := sent.Add(1)
				if n > nodeRequests {
					return
				}
				if err := request(client, fmt.Sprintf("%s/route-%d?n=%d", s.url, n%7, n)); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	clients.Wait()
	require.Zero(t, failed.Load())
	return sent.Load()
}

func request(client *http.Client, url string) error {
	r, err := client.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return errors.New(r.Status)
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}

// end stops the server and reads its log.
func (s *nodeServer) end(t *testing.T) *nodeLog {
	require.NoError(t, s.in.Close())
	require.NoError(t, s.cmd.Wait())
	f, err := os.Open(s.path)
	require.NoError(t, err)
	defer f.Close()
	toUnix := monoToUnix(t)
	log := &nodeLog{of: map[string][]nodeSpan{}}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kind string
		var span nodeSpan
		_, err := fmt.Sscan(lines.Text(), &kind, &span.traceID, &span.spanID, &span.start, &span.end, &span.route)
		require.NoError(t, err, lines.Text())
		span.start += toUnix
		span.end += toUnix
		log.of[kind] = append(log.of[kind], span)
	}
	require.NoError(t, lines.Err())
	for _, spans := range log.of {
		slices.SortFunc(spans, func(a, b nodeSpan) int { return int(int64(a.start - b.start)) })
	}
	return log
}

// nodeLog is what a server says that it did, by kind, in the order of time.
type nodeLog struct{ of map[string][]nodeSpan }

type nodeSpan struct {
	traceID, spanID, route string
	start, end             uint64 // Unix ns
}

// at returns the span of a kind that never overlaps that held at a time, and for
// so long before and after.
func (l *nodeLog) at(ns uint64, kind string, slack time.Duration) *nodeSpan {
	spans := l.of[kind]
	i, found := slices.BinarySearchFunc(spans, ns, func(s nodeSpan, ns uint64) int { return int(int64(s.start - ns)) })
	if !found {
		i--
	}
	if i < 0 || ns < spans[i].start+uint64(slack) || ns+uint64(slack) > spans[i].end {
		return nil
	}
	return &spans[i]
}

// active tells whether the link of a sample is that of a request that was active.
func (l *nodeLog) active(h *hit) bool {
	return slices.ContainsFunc(l.of["request"], func(s nodeSpan) bool {
		return s.traceID == h.traceID && s.spanID == h.spanID &&
			h.timeUnixNano >= s.start-uint64(startSlack) && h.timeUnixNano <= s.end+uint64(clockSlack) && s.matches(h)
	})
}

// explain says when the request that a link names was active.
func (l *nodeLog) explain(h *hit) string {
	for _, s := range l.of["request"] {
		if s.traceID == h.traceID {
			return fmt.Sprintf("that was from %v to %v, seen from the sample",
				time.Duration(int64(s.start-h.timeUnixNano)), time.Duration(int64(s.end-h.timeUnixNano)))
		}
	}
	return "the log has none of that trace"
}

// matches tells whether a sample has the attributes that the writer gave its contexts.
func (s *nodeSpan) matches(h *hit) bool {
	if s.route != "-" {
		return h.attrs["http.route"] == s.route
	}
	return h.attrs["datadog.thread_name"] == "Main Event Loop" && h.attrs["datadog.local_root_span_id"] == s.spanID
}
