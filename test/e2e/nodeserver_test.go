//go:build linux && amd64

package e2e

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const (
	nodeClients  = 4
	nodeRequests = 20000 // at most

	// clockSlack is how far the log's clock and that of the samples may be apart.
	clockSlack = nativeClockError
)

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
	s.cmd.Env = append(os.Environ(), "DD_TRACE_OTEL_CTX_ENABLED=true", "DD_TRACE_AGENT_URL=http://127.0.0.1:9",
		"CHILD="+filepath.Join(testutil.BuildWriters(t), "spin-plain"))
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
func (s *nodeServer) load(t *testing.T, d time.Duration) int64 {
	transport := &http.Transport{MaxIdleConnsPerHost: nodeClients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	var sent, failed atomic.Int64
	var clients sync.WaitGroup
	end := time.Now().Add(d)
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
	log := &nodeLog{threads: map[int]map[string][]nodeSpan{}}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kind string
		var tid int
		var span nodeSpan
		_, err := fmt.Sscan(lines.Text(), &kind, &tid, &span.traceID, &span.spanID, &span.start, &span.end, &span.route)
		require.NoError(t, err, lines.Text())
		span.start += toUnix
		span.end += toUnix
		if kind == "child" {
			log.child, log.ran = int64(tid), span.start
			continue
		}
		if log.threads[tid] == nil {
			log.threads[tid] = map[string][]nodeSpan{}
		}
		log.threads[tid][kind] = append(log.threads[tid][kind], span)
	}
	require.NoError(t, lines.Err())
	for _, kinds := range log.threads {
		for _, spans := range kinds {
			slices.SortFunc(spans, func(a, b nodeSpan) int { return int(int64(a.start - b.start)) })
		}
	}
	log.main = log.threads[s.pid]
	require.NotEmpty(t, log.main["burn"])
	return log
}

// nodeLog is what a server says that it did.
type nodeLog struct {
	threads map[int]map[string][]nodeSpan // by thread and kind, in the order of time
	main    map[string][]nodeSpan         // of the thread that serves
	child   int64                         // the program that it ran
	ran     uint64                        // and when; Unix ns
}

type nodeSpan struct {
	traceID, spanID, route string
	start, end             uint64 // Unix ns
}

// spanAt returns the one of some spans, which do not overlap, that held at a time,
// and for so long before and after.
func spanAt(spans []nodeSpan, ns uint64, slack time.Duration) *nodeSpan {
	i, found := slices.BinarySearchFunc(spans, ns, func(s nodeSpan, ns uint64) int { return int(int64(s.start - ns)) })
	if !found {
		i--
	}
	if i < 0 || ns < spans[i].start+uint64(slack) || ns+uint64(slack) > spans[i].end {
		return nil
	}
	return &spans[i]
}

// active returns the request whose link a sample has, if it was active.
func active(requests []nodeSpan, h *hit) *nodeSpan {
	i := slices.IndexFunc(requests, func(s nodeSpan) bool {
		return s.linked(h) && h.timeUnixNano >= s.start-uint64(clockSlack) && h.timeUnixNano <= s.end+uint64(clockSlack)
	})
	if i < 0 {
		return nil
	}
	return &requests[i]
}

// explain says when the request that a link names was active.
func explain(requests []nodeSpan, h *hit) string {
	for _, s := range requests {
		if s.linked(h) {
			return fmt.Sprintf("that was from %v to %v, seen from the sample",
				time.Duration(int64(s.start-h.timeUnixNano)), time.Duration(int64(s.end-h.timeUnixNano)))
		}
	}
	return "the log has none of that trace"
}

// linked tells whether a sample has the ids of a span.
func (s *nodeSpan) linked(h *hit) bool {
	return hex.EncodeToString(h.link.traceID[:]) == s.traceID && hex.EncodeToString(h.link.spanID[:]) == s.spanID
}

// attributed tells whether a sample has the attributes that the writer gave a span's context.
func (s *nodeSpan) attributed(h *hit) bool {
	if s.route != "-" {
		return h.attrs["http.route"] == s.route
	}
	return h.attrs["datadog.thread_name"] == "Main Event Loop" && h.attrs["datadog.local_root_span_id"] == s.spanID
}
