// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
)

// dataKiB is what the command may have of private memory in these tests: the base, the
// page's samples and what is decoded, and what the runtime takes ahead.
const dataKiB = (command.BaseBytes>>20 + 2*64 + 192) << 10

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
	program := profiletest.Program(t, dataKiB, "serve", "--max-memory", "64", "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0")
	s := newServed()
	program.Stdout, program.Stderr = &s.stdout, &s.stderr
	require.NoError(t, program.Start())
	done := make(chan error, 1)
	go func() { done <- program.Wait() }()
	t.Cleanup(func() { _ = program.Process.Kill() })
	address := s.address(t)

	requests := map[string]struct {
		data []byte
		want codes.Code
	}{
		"empty resources": {profiletest.Empty(3<<20, 1), codes.ResourceExhausted},
		"empty samples":   {profiletest.Empty(3<<20, 1, 2, 2, 2), codes.ResourceExhausted},
		"zeros":           {make([]byte, 9<<20), codes.ResourceExhausted},
		"lists in lists":  {profiletest.Nested(7 << 20), codes.InvalidArgument},
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
				// On a busy machine the place that they wait for may come too late, or they do not use it.
				if got := status.Code(err); got != r.want && got != codes.DeadlineExceeded && got != codes.Canceled {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	clients.Wait()
	export(t, address)
	t.Logf("most memory: %s", highWater(t, program.Process.Pid))
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-done, "%s", s.stderr.String())
	require.Contains(t, s.stdout.String(), "in 100 samples")
}

// TestServeIsNotHeldUpByABatch: what takes long to be taken in does not keep it from ending.
func TestServeIsNotHeldUpByABatch(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, address := startServe(t)
	export(t, address)
	request, err := pprofileotlp.NewExportRequestFromProfiles(profiletest.LabelBomb().Profiles).MarshalProto()
	require.NoError(t, err)
	sent := make(chan error, 1)
	go func() { sent <- send(address, request, grpc.UseCompressor(grpcgzip.Name)) }()
	select {
	case <-sent:
	case <-time.After(200 * time.Millisecond): // it is being taken in
	}
	s.cancel()
	before := cpuTime(t)
	require.Zero(t, s.wait(t), s.stderr.String())
	require.Contains(t, s.stdout.String(), "CPU by tenant")
	// Elsewhere it was taken in until then, or a busy machine has not begun with it.
	if cpuTime(t)-before > drainTimeout+2*time.Second {
		require.Contains(t, s.stdout.String()+s.stderr.String(), "samples not taken in")
	}
}

// cpuTime is that of this process.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
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
