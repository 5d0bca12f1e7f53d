// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
)

// dataKiB is what the command may have of private memory in these tests: the base, the
// page's samples and what is decoded, and what the runtime takes ahead.
const dataKiB = (baseBytes>>20 + 2*64 + 192) << 10

// limited is the command, which the kernel gives no more than dataKiB.
func limited(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "labelprof")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	script := fmt.Sprintf(`ulimit -d %d; exec "$0" "$@"`, dataKiB)
	return exec.Command("sh", append([]string{"-c", script, path}, args...)...)
}

// packed is a gzipped file of a part again and again: such files may follow one another.
func packed(t *testing.T, part []byte, times int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(part)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return bytes.Repeat(b.Bytes(), times)
}

// TestHostileFiles: what a small file stands for is refused before it takes the memory.
func TestHostileFiles(t *testing.T) {
	const room, decoded = "it has more than 16 MiB", "decoded it would take more than 32 MiB (--max-memory allows more)"
	samples := empty(1<<20, 2) // of pprof: 2 MiB
	requests := empty(7<<20, 1)
	line := `{"resourceProfiles":[{}` + strings.Repeat(",{}", 4<<20) + `]}`
	command := limited(t)
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"pprof of 120 Mi samples":  {packed(t, samples, 120), room},
		"pprof of 7 Mi samples":    {packed(t, samples, 7), decoded},
		"request of 14 MiB":        {requests, decoded},
		"frame of 14 MiB":          {frame(requests), decoded},
		"line of 12 MiB":           {[]byte(line), decoded},
		"request of lists in list": {nested(15 << 20), errNested.Error()},
		"line of lists in lists":   {[]byte(`{"a":` + strings.Repeat("[", 1<<20)), errNested.Error()},
		"long line":                {[]byte("{" + strings.Repeat(" ", 17<<20)), "a line has more than 16 MiB"},
		"long request":             {bytes.Repeat([]byte{firstField}, 17<<20), room},
	} {
		file := writeTemp(t, tc.data)
		commands := [][]string{{"top", file}}
		if bytes.Equal(tc.data, requests) { // they read alike
			commands = append(commands, []string{"pprof", "-o", filepath.Join(t.TempDir(), "out"), file}, []string{"serve", "--web", "127.0.0.1:0", file})
		}
		for _, args := range commands {
			args = append(args, "--max-memory", "64")
			cmd := exec.Command(command.Path, append(command.Args[1:len(command.Args):len(command.Args)], args...)...)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "%s %s", args[0], name)
			require.Equal(t, exitError, cmd.ProcessState.ExitCode(), "%s %s: %.2000s", args[0], name, out)
			require.Contains(t, string(out), tc.want, "%s %s", args[0], name)
			require.Equal(t, 1, bytes.Count(out, []byte("\n")), "one sentence: %s", out)
		}
	}
}

// send sends a request as it is.
func send(address string, request []byte, options ...grpc.CallOption) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var response []byte
	options = append(options, grpc.ForceCodecV2(rawCodec{}))
	return conn.Invoke(ctx, "/"+profilesService+"/Export", request, &response, options...)
}

// TestHostileRequests: many clients at once that send what takes much memory cost no more
// of it than allowed, and an exporter none of its samples.
func TestHostileRequests(t *testing.T) {
	command := limited(t, "serve", "--max-memory", "64", "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0")
	s := newServed()
	command.Stdout, command.Stderr = &s.stdout, &s.stderr
	require.NoError(t, command.Start())
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	t.Cleanup(func() { _ = command.Process.Kill() })
	address := s.address(t)

	requests := map[string]struct {
		data []byte
		want codes.Code
	}{
		"empty resources": {empty(3<<20, 1), codes.ResourceExhausted},
		"empty samples":   {empty(3<<20, 1, 2, 2, 2), codes.ResourceExhausted},
		"zeros":           {make([]byte, 9<<20), codes.ResourceExhausted},
		"lists in lists":  {nested(7 << 20), codes.InvalidArgument},
		"garbage":         {[]byte("\x0fgarbage"), codes.InvalidArgument},
	}
	var clients sync.WaitGroup
	for range 3 {
		for name, r := range requests {
			clients.Go(func() {
				var options []grpc.CallOption
				if name == "zeros" { // the others are small already
					options = append(options, grpc.UseCompressor(grpcgzip.Name))
				}
				err := send(address, r.data, options...)
				// On a busy machine the place that they wait for may come too late.
				if got := status.Code(err); got != r.want && got != codes.DeadlineExceeded {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	clients.Wait()
	export(t, address)
	t.Logf("most memory: %s", highWater(t, command.Process.Pid))
	require.NoError(t, command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-done, "%s", s.stderr.String())
	require.Contains(t, s.stdout.String(), "in 100 samples")
}

// highWater is the most memory that a process has had, as the kernel says it.
func highWater(t *testing.T, pid int) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(status), "VmHWM:")
	require.True(t, ok)
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

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
	sink := &sink{table: newTable([]string{"tenant"})}
	srv, err := newServer("127.0.0.1:0", sink, newDecoder(64<<20), patience{request: 200 * time.Millisecond, idle: 200 * time.Millisecond})
	require.NoError(t, err)
	address := srv.addr().String()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	for range maxReceiving { // a request that is begun and no more
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, "/"+profilesService+"/Export", grpc.ForceCodecV2(rawCodec{}))
		require.NoError(t, err)
		require.Error(t, stream.RecvMsg(new([]byte)))
	}
	require.Eventually(t, func() bool { return len(srv.receiving) == 0 }, time.Minute, time.Millisecond)
	export(t, address)

	ended(t, silent(t, address, 1, http2Preface), 1)
	require.NoError(t, srv.stop())
	require.EqualValues(t, 100, sink.table.hits)
}

// TestKinds: a file of another kind is told by a sentence.
func TestKinds(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	p := newPprofProfile(maxPprofBytes)
	walk(tenants(t).profiles, p.add)
	var pprof bytes.Buffer
	require.NoError(t, p.profile.WriteUncompressed(&pprof))
	span := in(append(in(make([]byte, 16), 1), in([]byte("GET /"), 5)...), 1, 2, 2)
	for name, tc := range map[string]struct {
		data []byte
		want error
	}{
		"program":        {program[:1<<16], errKind},
		"text":           {[]byte("a text\n"), errKind},
		"picture":        {[]byte("\x89PNG\r\n\x1a\n"), errKind},
		"perf.data":      {[]byte("PERFILE2\x68\x00\x00\x00"), errKind},
		"zeros":          {make([]byte, 100), nil},
		"unpacked pprof": {pprof.Bytes(), errKind},
		"OTLP traces":    {span, errKind},
		"JSON traces":    {[]byte(`{"resourceSpans":[{"scopeSpans":[]}]}`), errOtherSignal},
		"JSON":           {[]byte(`{"a": 1}`), errOtherSignal},
		"gzipped text":   {packed(t, []byte("a text\n"), 10), errNoPprof},
		"gzipped OTLP":   {packed(t, formats(t)["single"], 1), errNoPprof},
		"mouse":          {[]byte("\n"), errKind},
	} {
		code, _, stderr := command("top", writeTemp(t, tc.data))
		require.Equal(t, exitError, code, name)
		if tc.want != nil {
			require.Contains(t, stderr, tc.want.Error(), name)
		}
		require.NotContains(t, stderr, "wireType", name)
		require.NotContains(t, stderr, "proto:", name)
	}
}

// TestOwnersOnly: what is written is for nobody else, also where a file was there before.
func TestOwnersOnly(t *testing.T) {
	for _, before := range []bool{false, true} {
		dir := t.TempDir()
		pprof, otlp := filepath.Join(dir, "pprof"), filepath.Join(dir, "otlp")
		if before {
			for _, name := range []string{pprof, otlp} {
				require.NoError(t, os.WriteFile(name, nil, 0o644))
				require.NoError(t, os.Chmod(name, 0o644))
			}
		}
		code, _, stderr := command("pprof", "-o", pprof, writeTemp(t, formats(t)["single"]))
		require.Zero(t, code, stderr)
		s, address := startServe(t, "--out-otlp", otlp)
		export(t, address)
		s.cancel()
		require.Zero(t, s.wait(t))
		for _, name := range []string{pprof, otlp} {
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode(), "%s, there before: %v", name, before)
		}
	}
}
