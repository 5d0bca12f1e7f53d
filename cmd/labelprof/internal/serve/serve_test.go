// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/files"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sink"
)

// log is what a running command prints.
type log struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// served is a running `labelprof serve`.
type served struct {
	stdout, stderr log
	cancel         context.CancelFunc
	code           chan int
}

func newServed() *served { return &served{code: make(chan int, 1)} }

func (s *served) start(args []string) {
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	go func() { s.code <- command.ExitCode("serve", Run(ctx, args, &s.stdout, &s.stderr), &s.stderr) }()
}

func startServe(t *testing.T, args ...string) (*served, string) {
	t.Helper()
	s := newServed()
	s.start(append([]string{"--listen", "127.0.0.1:0", "--web", "127.0.0.1:0"}, args...))
	t.Cleanup(s.cancel)
	return s, s.address(t)
}

// address waits until it says where it receives.
func (s *served) address(t *testing.T) string {
	t.Helper()
	return s.said(t, `OTLP profiles at (127\.0\.0\.1:\d+)\n`)
}

// page waits until it says where its page is.
func (s *served) page(t *testing.T) string {
	t.Helper()
	return s.said(t, `flame graphs by label: http://(127\.0\.0\.1:\d+)/\n`)
}

func (s *served) said(t *testing.T, what string) string {
	t.Helper()
	var address string
	require.Eventually(t, func() bool {
		found := regexp.MustCompile(what).FindStringSubmatch(s.stderr.String())
		if found != nil {
			address = found[1]
		}
		return found != nil
	}, time.Minute, time.Millisecond, "%s", &s.stderr)
	return address
}

func (s *served) wait(t *testing.T) int {
	t.Helper()
	select {
	case code := <-s.code:
		return code
	case <-time.After(time.Minute):
		t.Fatal("serve did not end")
		return -1
	}
}

// export sends the shared batch the way an exporter does.
func export(t *testing.T, address string) {
	t.Helper()
	require.NoError(t, tryExport(t, address))
}

// tryExport is export, whose error is that the command has ended, for one.
func tryExport(t *testing.T, address string) error {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	request := pprofileotlp.NewExportRequestFromProfiles(profiletest.Tenants().Profiles)
	_, err = pprofileotlp.NewGRPCClient(conn).Export(context.Background(), request, grpc.UseCompressor(gzip.Name))
	return err
}

// run runs a command that ends by itself and returns its exit code and what it prints.
func run(name string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	commands := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"serve": Run, "top": files.Top, "pprof": files.Convert,
	}
	code = command.ExitCode(name, commands[name](context.Background(), args, &out, &errs), &errs)
	return code, out.String(), errs.String()
}

// single is a file with the shared batch.
func single(t *testing.T) string {
	t.Helper()
	request, err := pprofileotlp.NewExportRequestFromProfiles(profiletest.Tenants().Profiles).MarshalProto()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, request, 0o600))
	return file
}

func TestServe(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	pprofFile, otlpFile, truthFile := filepath.Join(dir, "out.pb.gz"), filepath.Join(dir, "out.otlp"), filepath.Join(dir, "truth")
	require.NoError(t, os.WriteFile(truthFile, []byte(`{"pid": 7, "sets": [{"labels": {"tenant": "acme"}, "cpu_ns": 100}]}`), 0o600))
	s, address := startServe(t, "--by", "tenant,route", "--pprof", pprofFile, "--out-otlp", otlpFile, "--truth", truthFile)
	export(t, address)
	export(t, address)
	s.cancel()
	require.Zero(t, s.wait(t), s.stderr.String())

	require.Contains(t, s.stdout.String(), "CPU by tenant, route: 10.00 s in 200 samples of 2 processes")
	require.Regexp(t, `acme +/a +4\.00 s +40\.0 % +80 `, s.stdout.String())
	require.Contains(t, s.stdout.String(), "labelled CPU of 1 processes")

	file, err := os.Open(pprofFile)
	require.NoError(t, err)
	defer file.Close()
	p, err := profile.Parse(file)
	require.NoError(t, err)
	require.Len(t, p.Sample, 4)
	require.Equal(t, []int64{80, 80 * profiletest.PeriodNs}, p.Sample[0].Value)
	require.Equal(t, []string{"writer"}, p.Sample[0].Label[sample.KeyProcessName])

	// The kept requests say the same.
	code, stdout, stderr := run("top", "--by", "tenant,route", "--truth", truthFile, otlpFile)
	require.Zero(t, code, stderr)
	require.Equal(t, s.stdout.String(), stdout)
}

// TestServePprofWithoutRoom: a pprof file that lacks samples is an error, with its reason.
func TestServePprofWithoutRoom(t *testing.T) {
	var frames bytes.Buffer
	for i := range 20 {
		_, err := otlp.AppendFrame(&frames, profiletest.Distinct(100*i, 100).Profiles)
		require.NoError(t, err)
	}
	file, out := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "out.pb.gz")
	require.NoError(t, os.WriteFile(file, frames.Bytes(), 0o600))
	code, _, stderr := run("serve", "--web", "", "--duration", "5s", "--max-memory", "1", "--pprof", out, file)
	require.Equal(t, command.ExitError, code)
	require.Regexp(t, `(?m)^labelprof serve: \d+ samples not in the pprof file: no room \(--max-memory allows more\)$`, stderr)
	require.FileExists(t, out)
}

// TestServePprofNowhere: that the pprof file cannot be written is said at once.
func TestServePprofNowhere(t *testing.T) {
	code, _, stderr := run("serve", "--listen", "127.0.0.1:0", "--web", "", "--duration", "3s", "--pprof", filepath.Join(t.TempDir(), "missing", "out"))
	require.Equal(t, command.ExitError, code)
	require.Regexp(t, `^labelprof serve: write .*: no such file or directory\n$`, stderr)
}

func TestServePrintsNews(t *testing.T) {
	s, address := startServe(t, "--interval", "50ms")
	tables := func() int { return strings.Count(s.stdout.String(), "CPU by tenant") }
	for n := 1; n <= 2; n++ {
		export(t, address)
		require.Eventually(t, func() bool { return tables() == n }, time.Minute, time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond) // some intervals without news
	s.cancel()
	require.Zero(t, s.wait(t))
	require.Equal(t, 3, tables(), "no tables without news, but at the end")
	require.NotContains(t, s.stdout.String(), "\x1b", "no terminal, no control")
}

func TestServeStopsByItself(t *testing.T) {
	defer goleak.VerifyNone(t)
	code := command.ExitError
	for duration := time.Second; code == command.ExitError && duration < time.Minute; duration *= 4 { // it has none if it ends before
		s, address := startServe(t, "--duration", duration.String())
		_ = tryExport(t, address)
		code = s.wait(t)
	}
	require.Zero(t, code)
}

func TestServeWithoutSamples(t *testing.T) {
	s, _ := startServe(t, "--duration", "10ms")
	require.Equal(t, command.ExitError, s.wait(t))
	require.Contains(t, s.stderr.String(), "no samples")
}

func TestServeIsNotHeldUpByAClient(t *testing.T) {
	s, address := startServe(t)
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	require.NoError(t, err)
	export(t, address)
	s.cancel()
	require.Zero(t, s.wait(t))
}

func TestServeRefusesBatchesThatAreNone(t *testing.T) {
	s, address := startServe(t)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	f := profiletest.Tenants()
	f.Dict.StringTable().FromRaw(nil)
	_, err = pprofileotlp.NewGRPCClient(conn).Export(context.Background(), pprofileotlp.NewExportRequestFromProfiles(f.Profiles))
	_ = err // refused or without a sample: the next one counts
	export(t, address)
	s.cancel()
	require.Zero(t, s.wait(t))
	require.Contains(t, s.stdout.String(), "in 100 samples")
}

func TestServeAddressInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	// A recording of the one that listens there stays.
	recording := filepath.Join(t.TempDir(), "rec.otlp")
	require.NoError(t, os.WriteFile(recording, []byte("requests"), 0o600))
	for used, free := range map[string]string{"--listen": "--web", "--web": "--listen"} {
		code, _, stderr := run("serve", free, "127.0.0.1:0", used, listener.Addr().String(), "--out-otlp", recording)
		require.Equal(t, command.ExitError, code)
		require.Contains(t, stderr, "address already in use")
		require.Contains(t, stderr, "("+used+" chooses another address", "what to do")
		kept, err := os.ReadFile(recording)
		require.NoError(t, err)
		require.Equal(t, "requests", string(kept), used)
	}
}

// TestServeReplacesARecording: of a command that is over.
func TestServeReplacesARecording(t *testing.T) {
	recording := filepath.Join(t.TempDir(), "rec.otlp")
	require.NoError(t, os.WriteFile(recording, bytes.Repeat([]byte{0xff}, 1<<20), 0o600))
	s, address := startServe(t, "--out-otlp", recording)
	export(t, address)
	s.cancel()
	require.Zero(t, s.wait(t), s.stderr.String())
	code, stdout, stderr := run("top", "--by", "tenant", recording)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "in 100 samples")
}

// TestServeCannotPrint: an output that fails is an error, and the files are written all the same;
// one whose reader has gone is none.
func TestServeCannotPrint(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code int
	}{{syscall.ENOSPC, command.ExitError}, {syscall.EPIPE, command.ExitOK}} {
		out := filepath.Join(t.TempDir(), "out")
		var stderr log
		err := Run(t.Context(), []string{"--web", "", "--duration", "3s", "--interval", "100ms", "--pprof", out, single(t)}, broken{tc.err}, &stderr)
		require.Equal(t, tc.code, command.ExitCode("serve", err, &stderr), stderr.String())
		require.Equal(t, tc.code == command.ExitError, strings.Contains(stderr.String(), "print the tables: no space left on device"), stderr.String())
		require.FileExists(t, out)
	}
}

// broken is an output that fails.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// TestServeFilesAreNotRecorded: --out-otlp beside files is wrong usage, and empties nothing.
func TestServeFilesAreNotRecorded(t *testing.T) {
	shown := single(t)
	other := filepath.Join(t.TempDir(), "rec.otlp")
	require.NoError(t, os.WriteFile(other, []byte("requests"), 0o600))
	for _, recording := range []string{shown, other} {
		before, err := os.ReadFile(recording)
		require.NoError(t, err)
		code, _, stderr := run("serve", "--web", "", "--duration", "10ms", shown, "--out-otlp", recording)
		require.Equal(t, command.ExitUsage, code, stderr)
		require.Contains(t, stderr, "--out-otlp")
		kept, err := os.ReadFile(recording)
		require.NoError(t, err)
		require.Equal(t, before, kept)
	}
}

// TestServeFilesOnly: where to receive makes no sense beside files.
func TestServeFilesOnly(t *testing.T) {
	code, _, stderr := run("serve", "--web", "", "--duration", "1s", "--listen", "127.0.0.1:0", single(t))
	require.Equal(t, command.ExitUsage, code, stderr)
	require.Contains(t, stderr, "--listen")
}

// large is an output that says of each request that it takes more than a recording may.
type large struct{}

func (large) Write([]byte) (int, error) { return 2 << 30, nil }

// TestFullRecording: the end of the command says that a recording is not all.
func TestFullRecording(t *testing.T) {
	s := sink.New(sink.Config{OTLP: large{}})
	var stderr bytes.Buffer
	s.Consume(profiletest.Tenants().Profiles)
	require.NoError(t, finish(&settings{}, s, false, &stderr))
	require.Empty(t, stderr.String())
	s.Consume(profiletest.Tenants().Profiles)
	require.NoError(t, finish(&settings{}, s, false, &stderr))
	require.Equal(t, "labelprof serve: 1 batches not in the OTLP file: it is full, with 1 GiB\n", stderr.String())
	_, help, _ := run("serve", "-h")
	require.Contains(t, help, "1 GiB")
}

// delayed is a file whose writes fail when it is closed, as on NFS.
type delayed struct{ bytes.Buffer }

func (*delayed) Close() error { return syscall.ENOSPC }

// TestRecordingThatCannotBeClosed: a recording whose last bytes are lost is no whole one.
func TestRecordingThatCannotBeClosed(t *testing.T) {
	s := sink.New(sink.Config{OTLP: &delayed{}})
	s.Consume(profiletest.Tenants().Profiles)
	require.ErrorIs(t, finish(&settings{}, s, false, io.Discard), syscall.ENOSPC)
}
