//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const (
	systemdService = "otelcol-customlabels.service"
	systemdConfig  = "/etc/otelcol-customlabels/config.yaml"
	systemdPlace   = "/etc/otelcol-customlabels/environment"
	// mostExposed is the most that systemd-analyze may say of the unit, times ten.
	mostExposed = 30
	// systemdPatience is for an emulated machine on a busy one.
	systemdPatience = 5 * time.Minute
	otherUser       = 4321
)

// TestSystemd runs the unit as it is under the systemd of a virtual machine: sampling works
// in its sandbox, as its own user, with labels, whole stacks and names of the kernel's
// functions; a reload with a bad file leaves what runs alone, one with a good file does not
// restart it; systemd finds it hardly exposed.
func TestSystemd(t *testing.T) {
	if os.Getenv("VMRUN") == "" {
		t.Skip("it changes the machine that it runs on: make e2e-systemd gives it a virtual one")
	}
	require.FileExists(t, "/etc/systemd/system/"+systemdService)
	setParanoid(t, 2) // above it, Debian's kernels want CAP_SYS_ADMIN
	seen := &systemdSeen{}
	write(t, systemdPlace, "OTLP_GATEWAY="+startEndpoint(t, &sink{t: t, visit: seen.visit})+"\n")
	write(t, systemdConfig, systemdConfigOf(199))
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("journalctl", "--no-pager", "-n", "80").CombinedOutput()
			t.Logf("the journal:\n%s", out)
		}
	})
	spin := startAs(t, otherUser, "writer-v1-exe", "spin", "--labels", "1", "--threads", "1", "--seconds", "3600")
	storm := startAs(t, otherUser, "writer-v1-exe", "storm", "--threads", "2", "--seconds", "3600")
	systemctl(t, "start", systemdService)
	pid := systemctl(t, "show", "--value", "-p", "MainPID", systemdService)

	seen.await(t, "labels", 199, func(h *hit) bool { return h.pid == int64(spin) && h.attrs[prefix+"label_00"] != "" })
	seen.await(t, "whole stacks", 199, func(h *hit) bool {
		return h.pid == int64(spin) && h.attrs["custom_labels.stack_truncated"] == "" && slices.Contains(h.functions, "thread_main")
	})
	seen.await(t, "names of the kernel", 199, func(h *hit) bool {
		return h.pid == int64(storm) && (slices.Contains(h.functions, "do_syscall_64") || slices.Contains(h.functions, "el0_svc"))
	})
	user := requireSandbox(t, pid)

	write(t, systemdConfig, systemdConfigOf(-1))
	out, err := exec.Command("systemctl", "reload", systemdService).CombinedOutput()
	require.Error(t, err, "a reload with a bad file: %s", out)
	require.Equal(t, pid, systemctl(t, "show", "--value", "-p", "MainPID", systemdService))
	require.Equal(t, "active", systemctl(t, "is-active", systemdService))
	labelled := func(h *hit) bool { return h.attrs[prefix+"label_00"] != "" }
	seen.forget()
	seen.await(t, "labels after a bad reload", 199, labelled)

	write(t, systemdConfig, systemdConfigOf(97))
	systemctl(t, "reload", systemdService)
	seen.await(t, "labels at the new rate", 97, labelled)
	require.Equal(t, pid, systemctl(t, "show", "--value", "-p", "MainPID", systemdService))

	journal, err := exec.Command("journalctl", "--no-pager", "-o", "cat", "-u", systemdService).CombinedOutput()
	require.NoError(t, err, "%s", journal)
	require.Contains(t, string(journal), collectorReady)
	for _, lack := range []string{"missing capability", "not permitted", "ermission denied"} {
		require.NotContains(t, string(journal), lack)
	}
	exposure := exposed(t)
	systemctl(t, "stop", systemdService)
	require.Equal(t, "success", systemctl(t, "show", "--value", "-p", "Result", systemdService))
	fmt.Printf("systemd: as user %s, labels, whole stacks and names of the kernel; a bad reload left it alone; %s\n", user, exposure)
}

func systemdConfigOf(rate int) string {
	return fmt.Sprintf(`
receivers: {custom_labels: {samples_per_second: %d, report_interval: 500ms}}
exporters: {otlp_grpc: {endpoint: "${env:OTLP_GATEWAY}", tls: {insecure: true}}}
service:
  pipelines: {profiles: {receivers: [custom_labels], exporters: [otlp_grpc]}}
  telemetry: {metrics: {level: none}}
`, rate)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644)) //nolint:gosec // read by the service's user
}

// startAs starts a writer as another user and returns its PID.
func startAs(t *testing.T, user uint32, variant string, args ...string) int {
	t.Helper()
	cmd := exec.Command(filepath.Join(os.Getenv(testutil.WritersEnv), variant), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// systemctl returns what it says.
func systemctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("systemctl", args...).CombinedOutput()
	require.NoError(t, err, "systemctl %s: %s", args, out)
	return strings.TrimSpace(string(out))
}

// requireSandbox checks what a process is, and returns its user.
func requireSandbox(t *testing.T, pid string) string {
	t.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	require.NoError(t, err)
	fields := map[string]string{}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		fields[key] = strings.TrimSpace(value)
	}
	var capabilities uint64
	for _, c := range documented {
		capabilities |= 1 << c.capability
	}
	for _, set := range []string{"CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		require.Equal(t, fmt.Sprintf("%016x", capabilities), fields[set], set)
	}
	require.Equal(t, "1", fields["NoNewPrivs"])
	require.Equal(t, "2", fields["Seccomp"], "a filter of system calls")
	user := strings.Fields(fields["Uid"])[0]
	require.NotEqual(t, "0", user)
	return user
}

// exposed is what systemd says of the unit, which must not be too much.
func exposed(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("systemd-analyze", "security", "--no-pager", fmt.Sprintf("--threshold=%d", mostExposed), systemdService).CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// systemdSeen is what the next consumer got.
type systemdSeen struct {
	mu      sync.Mutex
	batches []flatBatch
}

func (s *systemdSeen) visit(b flatBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, b)
}

func (s *systemdSeen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = nil
}

// await waits for a sample at a rate for which something holds, while the service runs.
func (s *systemdSeen) await(t *testing.T, what string, rate int64, holds func(*hit) bool) {
	t.Helper()
	found := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.batches, func(b flatBatch) bool {
			return b.period == int64(time.Second)/rate && slices.ContainsFunc(b.hits, func(h hit) bool { return holds(&h) })
		})
	}
	for end := time.Now().Add(systemdPatience); !found(); time.Sleep(time.Second) {
		require.Equal(t, "0", systemctl(t, "show", "--value", "-p", "NRestarts", systemdService), "it has ended")
		if time.Now().After(end) {
			require.FailNow(t, "did not come", "%s; last batches: %+v", what, s.last())
		}
	}
	fmt.Println("systemd:", what)
}

// last is some of what came last.
func (s *systemdSeen) last() (hits []hit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches[max(0, len(s.batches)-2):] {
		hits = append(hits, b.hits[:min(len(b.hits), 5)]...)
	}
	return hits
}
