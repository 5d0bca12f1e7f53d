//go:build linux && (amd64 || arm64)

package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// targetEnv names a compiled testdata/bpf/target.c, for machines without a compiler.
const targetEnv = "CUSTOM_LABELS_BPF_TARGET"

// buildTarget compiles testdata/bpf/target.c.
func buildTarget(t *testing.T) string {
	t.Helper()
	return buildTargetWith(t, "-fno-omit-frame-pointer")
}

func buildTargetWith(t *testing.T, flags ...string) string {
	t.Helper()
	if built := os.Getenv(targetEnv); built != "" {
		return built
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) //nolint:gosec // other users run it, too
	out := filepath.Join(dir, "target")
	args := append([]string{"-O2", "-g", "../../testdata/bpf/target.c"}, flags...)
	if runtime.GOARCH == "arm64" {
		args = append(args, "-mbranch-protection=standard")
	}
	testutil.Compile(t, out, "gcc", args...)
	return out
}

// A target is a running testdata/bpf/target.c.
type target struct {
	pid                           uint32
	offsetV0, offsetV1, offsetCtx int64
	offsetNode, offsetGo          int64
	// Of a state depth-N:
	signedFrames int
	descend      uint64 // where the function begins that stays
}

func startTarget(t *testing.T, path, state string) target {
	t.Helper()
	var tgt target
	_, err := fmt.Sscan(startProgram(t, path, state),
		&tgt.pid, &tgt.offsetV0, &tgt.offsetV1, &tgt.offsetCtx, &tgt.signedFrames, &tgt.descend, &tgt.offsetNode, &tgt.offsetGo)
	require.NoError(t, err)
	return tgt
}

// startProgram returns the line that a program prints when it is ready.
func startProgram(t *testing.T, path, state string) string {
	t.Helper()
	cmd := exec.Command(path, state)
	cmd.Stderr = os.Stderr
	// Its children end with it, and it ends with a test program that is ended.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return line
}

// identify finds the identity of a process by a scan.
func identify(t *testing.T, s *Sampler, pid uint32) record.ProcessID {
	t.Helper()
	var id record.ProcessID
	require.NoError(t, s.Scan(func(ev record.Event) {
		if ev.PID == int(pid) {
			id = ev.Process
		}
	}))
	require.NotZero(t, id)
	return id
}

// olderEnv has tests use the objects for older kernels, on any.
const olderEnv = "CUSTOM_LABELS_OLDER_KERNELS"

// quickReadDelay is for tests that wait for one record after the other.
const quickReadDelay = 5 * time.Millisecond

func newSampler(t *testing.T, config Config) *Sampler {
	t.Helper()
	testutil.RequireBPF(t)
	if config.ReadDelay == 0 {
		config.ReadDelay = quickReadDelay
	}
	config.older = os.Getenv(olderEnv) != ""
	s, err := New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// needFileNames skips what only kernels can have whose mappings BPF finds.
func needFileNames(t *testing.T, s *Sampler) {
	t.Helper()
	if !s.CanNameFiles() {
		var major, minor int
		_, err := fmt.Sscanf(release(), " (%d.%d", &major, &minor)
		require.NoError(t, err)
		require.True(t, os.Getenv(olderEnv) != "" || major < 6 || major == 6 && minor < 1, "Linux has told it since 6.1")
		t.Skip("the kernel does not tell BPF what a process maps")
	}
}

// readUntil passes records to visit until it returns true, for a minute at most; in an emulated guest, which others
// may leave little time, for ten.
func readUntil(t *testing.T, s *Sampler, visit func(*Record) bool) {
	t.Helper()
	var r Record
	patience := testutil.Size(time.Minute, time.Minute, 10*time.Minute)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		err := s.Read(&r)
		if errors.Is(err, ErrIdle) {
			continue
		}
		require.NoError(t, err)
		if visit(&r) {
			return
		}
	}
	t.Fatalf("the expected records did not come within %v", patience)
}

// skipOlder reads the records of samples that have been taken by now, and returns that time. Where the host has
// stopped a CPU in the middle of a sample, an older one may follow.
func skipOlder(t *testing.T, s *Sampler) (nowNs uint64) {
	t.Helper()
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	time.Sleep(10 * time.Millisecond) // a sample that was under way
	readUntil(t, s, func(r *Record) bool { return r.TimeNs > uint64(now.Nano()) })
	return uint64(now.Nano())
}

// drain stops s and passes all records that are left to visit.
func drain(t *testing.T, s *Sampler, visit func(*Record)) {
	t.Helper()
	require.NoError(t, s.Stop())
	s.Drain()
	var r Record
	for {
		err := s.Read(&r)
		if errors.Is(err, ErrDrained) {
			return
		}
		if errors.Is(err, ErrIdle) {
			continue
		}
		require.NoError(t, err)
		visit(&r)
	}
}
