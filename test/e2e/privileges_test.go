//go:build linux && (amd64 || arm64)

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	privilegesEnv   = "CUSTOM_LABELS_TEST_PRIVILEGES" // a privilegeOrder, as JSON
	paranoidSysctl  = "/proc/sys/kernel/perf_event_paranoid"
	enoughPrivilege = 20 // samples of each program
)

// documented are the capabilities that README.md names, with what a program misses
// that lacks one.
var documented = []struct {
	capability uintptr
	name       string
	missing    []string // of what a receiver with all of them has
}{
	{unix.CAP_BPF, "CAP_BPF", []string{"start"}},
	{unix.CAP_PERFMON, "CAP_PERFMON", []string{"start"}},
	{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE", []string{"labels of deleted", "labels of hidden", "labels of public"}},
	{unix.CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", []string{"labels of deleted", "labels of hidden"}},
	{unix.CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", []string{"labels of deleted"}},
	{unix.CAP_SYSLOG, "CAP_SYSLOG", []string{"names of the kernel"}},
}

// privilegedHas is what a receiver with all documented capabilities has.
var privilegedHas = []string{
	"labels of deleted", "labels of hidden", "labels of public", "names of the kernel", "start",
}

// A privilegeOrder says what to look at, and what is to be waited for.
type privilegeOrder struct {
	PIDs map[string]int
	Want []string
}

// A privilegeReport is what a receiver without root's privileges has, and says.
type privilegeReport struct {
	Has  []string
	Said []string
}

// TestPrivileges runs the receiver as a user with exactly the documented capabilities,
// and with each of them taken away, and tells what it has then and what it says.
func TestPrivileges(t *testing.T) {
	if os.Getenv(privilegesEnv) != "" {
		reportPrivileges(t)
		return
	}
	testutil.RequireBPF(t)
	setParanoid(t, 2)
	order := privilegeOrder{PIDs: privilegePrograms(t)}
	run := func(what string, without uintptr, missing []string) privilegeReport {
		order.Want = slices.DeleteFunc(slices.Clone(privilegedHas), func(s string) bool { return slices.Contains(missing, s) })
		report := runPrivileged(t, order, without)
		fmt.Printf("%-31s has %s\n", what, strings.Join(report.Has, ", "))
		for _, sentence := range report.Said {
			fmt.Printf("%-31s says %q\n", "", sentence)
		}
		if slices.Contains(missing, "start") {
			require.Empty(t, report.Has, what)
			return report
		}
		require.Equal(t, order.Want, report.Has, what)
		return report
	}
	require.Empty(t, run("all that are documented", 0, nil).Said)
	// An emulated machine starts a receiver slowly: it only takes away what none starts without.
	for _, d := range size(documented, documented, documented[:2]) {
		report := run("without "+d.name, d.capability, d.missing)
		require.Len(t, report.Said, 1, d.name)
		require.Contains(t, report.Said[0], "missing capability "+d.name)
	}
	order.Want = privilegedHas
	paranoid(t, order)
}

// paranoid: above 2, some kernels want CAP_SYS_ADMIN, and this is said; with others
// nothing changes.
func paranoid(t *testing.T, order privilegeOrder) {
	t.Helper()
	setParanoid(t, 3)
	report := runPrivileged(t, order, 0)
	fmt.Printf("%-31s has %s\n", "kernel.perf_event_paranoid=3", strings.Join(report.Has, ", "))
	if len(report.Has) > 0 {
		require.Equal(t, privilegedHas, report.Has)
		require.Empty(t, report.Said)
		return
	}
	fmt.Printf("%-31s says %q\n", "", report.Said)
	require.Len(t, report.Said, 1)
	require.Contains(t, report.Said[0], "CAP_SYS_ADMIN, which kernel.perf_event_paranoid=3 asks for")
}

func setParanoid(t *testing.T, value int) {
	t.Helper()
	before, err := os.ReadFile(paranoidSysctl)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.WriteFile(paranoidSysctl, before, 0)) })
	require.NoError(t, os.WriteFile(paranoidSysctl, []byte(strconv.Itoa(value)), 0))
}

// privilegePrograms starts the programs that a receiver without privileges may not
// look into, and returns their PIDs: root's, of an executable for everyone, of one that
// only root may read, of one whose library was deleted; and one that lives in the kernel.
func privilegePrograms(t *testing.T) map[string]int {
	t.Helper()
	from := testutil.BuildWriters(t)
	dir, err := os.MkdirTemp("", "privileges")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // others have to reach what is in it
	install := func(name string, mode os.FileMode) string {
		text, err := os.ReadFile(filepath.Join(from, name))
		require.NoError(t, err)
		to := filepath.Join(dir, fmt.Sprintf("%o", mode), name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755)) //nolint:gosec // likewise
		require.NoError(t, os.WriteFile(to, text, 0o600))
		require.NoError(t, os.Chmod(to, mode))
		return to
	}
	spin := func(path string) int {
		return testutil.StartPath(t, path, "spin", "--labels", "1", "--threads", "1", "--seconds", "600").PID
	}
	pids := map[string]int{
		"public": spin(install("writer-v1-exe", 0o755)),
		"hidden": spin(install("writer-v1-exe", 0o700)),
	}
	library := install("libcustomlabels_v1.so", 0o755)
	pids["deleted"] = spin(install("writer-v1-lib", 0o755))
	require.NoError(t, os.Remove(library))
	copier := exec.Command("dd", "if=/dev/zero", "of=/dev/null", "bs=4k")
	require.NoError(t, copier.Start())
	t.Cleanup(func() { _ = copier.Process.Kill(); _ = copier.Wait() })
	pids["kernel"] = copier.Process.Pid
	return pids
}

// runPrivileged runs this test as nobody with the documented capabilities but one.
func runPrivileged(t *testing.T, order privilegeOrder, without uintptr) (report privilegeReport) {
	t.Helper()
	text, err := json.Marshal(order)
	require.NoError(t, err)
	var caps []uintptr
	for _, d := range documented {
		if d.capability != without {
			caps = append(caps, d.capability)
		}
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestPrivileges$", "-test.v")
	cmd.Env = append(os.Environ(), privilegesEnv+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, AmbientCaps: caps}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range strings.Lines(string(out)) {
		if text, ok := strings.CutPrefix(line, "report: "); ok {
			require.NoError(t, json.Unmarshal([]byte(text), &report))
			return report
		}
	}
	require.Fail(t, "no report", "%s", out)
	return report
}

// reportPrivileges samples the programs and prints what there is of them.
func reportPrivileges(t *testing.T) {
	require.Equal(t, nobody, os.Geteuid())
	var order privilegeOrder
	require.NoError(t, json.Unmarshal([]byte(os.Getenv(privilegesEnv)), &order))
	seen := &privilegeSink{names: map[int64]string{}, samples: map[string]int{}, has: map[string]bool{}}
	for name, pid := range order.PIDs {
		seen.names[int64(pid)] = name
	}
	core, logs := observer.New(zap.WarnLevel)
	r := newReceiver(t, &sink{t: t, visit: seen.visit}, zap.New(core), func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 499
		c.ReportInterval = 500 * time.Millisecond
	})
	var report privilegeReport
	if err := r.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		report.Said = []string{err.Error()}
	} else {
		seen.await(len(order.PIDs), order.Want)
		require.NoError(t, r.Shutdown(t.Context()))
		report.Has = append(seen.list(), "start")
		for _, entry := range logs.All() {
			if strings.HasPrefix(entry.Message, "missing capability") {
				report.Said = append(report.Said, entry.Message)
			}
		}
	}
	text, err := json.Marshal(report)
	require.NoError(t, err)
	fmt.Printf("report: %s\n", text)
}

// A privilegeSink notes what there is of each program.
type privilegeSink struct {
	mu      sync.Mutex
	names   map[int64]string // by PID
	samples map[string]int
	has     map[string]bool
}

func (s *privilegeSink) visit(b flatBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.hits {
		h := &b.hits[i]
		name := s.names[h.pid]
		if name == "" {
			continue
		}
		s.samples[name]++
		if name == "kernel" {
			s.note("names of the kernel", slices.ContainsFunc(h.functions, isSystemCall))
			continue
		}
		s.note("labels of "+name, h.attrs[prefix+"label_00"] != "")
	}
}

func (s *privilegeSink) note(what string, there bool) { s.has[what] = s.has[what] || there }

// isSystemCall reports whether a function is the kernel's, through which all system calls
// go. On aarch64 compilers append to its name how they have changed it.
func isSystemCall(name string) bool {
	return name == "do_syscall_64" || strings.HasPrefix(name, "invoke_syscall")
}

// await waits for samples of all programs, and for what there is to be.
func (s *privilegeSink) await(programs int, want []string) {
	enough := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, samples := range s.samples {
			if samples >= enoughPrivilege {
				n++
			}
		}
		return n == programs && !slices.ContainsFunc(want, func(what string) bool { return what != "start" && !s.has[what] })
	}
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline) && !enough(); {
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *privilegeSink) list() (has []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, there := range s.has {
		if there {
			has = append(has, what)
		}
	}
	slices.Sort(has)
	return has
}
