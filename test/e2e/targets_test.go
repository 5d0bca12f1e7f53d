//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// enoughOfTarget samples of a busy thread show that it is sampled.
const enoughOfTarget = 20

// TestTargets: of two programs that are equally busy, one is selected; every sample is
// its, and those of the other are counted.
func TestTargets(t *testing.T) {
	testutil.RequireBPF(t)
	dir := testutil.BuildWriters(t)
	spin := func(variant string, args ...string) *testutil.Writer {
		return testutil.Start(t, variant, append([]string{"spin", "--seconds", "86400"}, args...)...)
	}
	in, out := spin("writer-v1-exe"), spin("writer-v1-lib")
	other := startUser(t, filepath.Join(dir, "writer-v1-exe"), 54321, 0, "spin", "--seconds", "86400")
	uid := int64(54321)

	checkTargets(t, "include executable", in, out, customlabelsreceiver.Targets{
		Include: []customlabelsreceiver.TargetSelector{{Executable: filepath.Join(dir, "writer-v1-e*")}},
	})
	checkTargets(t, "include uid", other, in, customlabelsreceiver.Targets{
		Include: []customlabelsreceiver.TargetSelector{{UID: &uid}},
	})
	checkTargets(t, "exclude uid", in, other, customlabelsreceiver.Targets{
		Exclude: []customlabelsreceiver.TargetSelector{{UID: &uid}},
	})
	checkTargets(t, "exclude pid", in, out, customlabelsreceiver.Targets{
		Exclude: []customlabelsreceiver.TargetSelector{{PID: out.PID}},
	})
	checkTargets(t, "exclude wins", in, out, customlabelsreceiver.Targets{
		Include: []customlabelsreceiver.TargetSelector{{Executable: "/**"}},
		Exclude: []customlabelsreceiver.TargetSelector{{Executable: "**/writer-v1-lib", PID: out.PID}},
	})
	if path, id, err := moveToCgroup(t, out.PID, fmt.Sprintf("custom-labels-targets-%d", os.Getpid())); err != nil {
		fmt.Printf("cgroup: this machine lets root make no cgroup v2: %v\n", err)
	} else {
		checkTargets(t, "exclude cgroup", in, out, customlabelsreceiver.Targets{
			Exclude: []customlabelsreceiver.TargetSelector{{Cgroup: path + "*"}},
		})
		checkTargets(t, "include cgroup id", out, in, customlabelsreceiver.Targets{
			Include: []customlabelsreceiver.TargetSelector{{CgroupID: id}},
		})
	}
	checkTargets(t, "labelled only", in, spin("spin-plain"), customlabelsreceiver.Targets{LabelledOnly: true})
}

// runAs runs a writer as another user, as busy as others.
func runAs(t *testing.T, path string, uid int, args ...string) *testutil.Writer {
	t.Helper()
	return startUser(t, path, uid, 0, args...)
}

// moveToCgroup moves a process to a cgroup of its own.
func moveToCgroup(t *testing.T, pid int, name string) (path string, id uint64, err error) {
	groups, err := procfs.FindCgroupFS()
	if err != nil {
		return "", 0, err
	}
	own, err := procfs.FS{}.Cgroup(os.Getpid())
	require.NoError(t, err)
	path = filepath.Join(own.Path, name)
	dir := filepath.Join(groups.Root, path)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", 0, err
	}
	procs := func(dir string) string { return filepath.Join(dir, "cgroup.procs") }
	t.Cleanup(func() {
		// It is empty then, or its last process goes to where it came from.
		_ = os.WriteFile(procs(filepath.Dir(dir)), []byte(strconv.Itoa(pid)), 0)
		_ = os.Remove(dir)
	})
	if err := os.WriteFile(procs(dir), []byte(strconv.Itoa(pid)), 0); err != nil {
		return "", 0, err
	}
	id, err = groups.ID(path)
	return path, id, err
}

// checkTargets samples under a selection that wants one writer and not the other.
func checkTargets(t *testing.T, name string, in, out *testutil.Writer, selection customlabelsreceiver.Targets) {
	t.Helper()
	byPID := map[int64]int{}
	var mu sync.Mutex
	next := &sink{t: t, visit: func(b flatBatch) {
		mu.Lock()
		defer mu.Unlock()
		for i := range b.hits {
			byPID[b.hits[i].pid]++
		}
	}}
	r := startReceiver(t, next, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 499
		c.ReportInterval = 300 * time.Millisecond
		c.OffCPU.GetOrInsertDefault().Threshold = 1
		c.Targets = selection
	})
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return byPID[int64(in.PID)] >= enoughOfTarget && r.metric("filtered_samples", "reason")["target"] > 0
	}, 3*time.Minute, 50*time.Millisecond, "%s: it is not sampled", name)
	r.stop()
	account := r.account()
	fmt.Printf("%-20s wanted %6d, not wanted %d; filtered: target %6d, unknown_process %d\n",
		name, byPID[int64(in.PID)], byPID[int64(out.PID)], account["filtered_target"], account["filtered_unknown_process"])
	require.Zero(t, byPID[int64(out.PID)], name)
	require.NotZero(t, account["filtered_target"], name)
	if len(selection.Include) == 1 && selection.Exclude == nil && selection.Include[0].CgroupID != 0 {
		require.Len(t, byPID, 1, "%s: %v", name, byPID)
	}
	requireClosed(t, account)
	requireClosed(t, r.switchAccount())
}

// requireClosed checks that all was emitted, filtered or dropped, to the last one.
func requireClosed(t *testing.T, account map[string]int64) {
	t.Helper()
	sum := account["emitted"]
	for name, n := range account {
		if strings.HasPrefix(name, "filtered_") || strings.HasPrefix(name, "dropped_") {
			sum += n
		}
	}
	require.Equal(t, account["hits"], sum, "%v", account)
	require.Zero(t, account["pending"])
}

// TestTargetsLoad: a program that is not labelled becomes so, by a library that it
// loads, and is sampled from then on.
func TestTargetsLoad(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	const delay = 2500 * time.Millisecond
	labelled := make(chan struct{})
	var mu sync.Mutex
	earliest := map[int64]uint64{} // sample by PID
	out := &sink{t: t, visit: func(b flatBatch) {
		mu.Lock()
		defer mu.Unlock()
		for i := range b.hits {
			h := &b.hits[i]
			if at, ok := earliest[h.pid]; !ok || h.timeUnixNano < at {
				earliest[h.pid] = h.timeUnixNano
			}
			if h.attrs[prefix+"label_00"] != "" && h.executable == "writer-v1-dlopen" {
				select {
				case <-labelled:
				default:
					close(labelled)
				}
			}
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 499
		c.ReportInterval = 100 * time.Millisecond
		c.Targets.LabelledOnly = true
	})
	// By the time that it loads the library, it has long been judged.
	begun := time.Now()
	w := testutil.Start(t, "writer-v1-dlopen", "spin", "--seconds", "86400", "--load-delay-ms", fmt.Sprint(delay.Milliseconds()))
	ready := time.Now()
	select {
	case <-labelled:
		fmt.Printf("a library with labels was loaded: the first sample was in a batch %v later\n", time.Since(ready).Round(time.Millisecond))
	case <-time.After(2 * time.Minute):
		t.Fatal("it is not sampled")
	}
	r.stop()
	require.GreaterOrEqual(t, earliest[int64(w.PID)], uint64(begun.Add(delay).UnixNano()), "a sample from before the library was loaded")
	requireClosed(t, r.account())
}

// startStorm runs a short program again and again, two at a time, until it is stopped.
func startStorm(program string) (stop func()) {
	end := make(chan struct{})
	var storm sync.WaitGroup
	for range 2 {
		storm.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
					_ = exec.Command(program).Run() // however it ends
				}
			}
		})
	}
	return func() {
		close(end)
		storm.Wait()
	}
}

// TestTargetsStorm: programs that end before they can be judged. No sample of them is
// emitted, each is counted, and the account closes.
func TestTargetsStorm(t *testing.T) {
	testutil.RequireBPF(t)
	program := filepath.Join(t.TempDir(), "writer-v1-exe") // which nobody else runs
	copyFile(t, filepath.Join(testutil.BuildWriters(t), "writer-v1-exe"), program, 0o755)
	w := testutil.StartPath(t, program, "spin", "--seconds", "86400")
	others := map[int64]int{}
	out := &sink{t: t, visit: func(b flatBatch) {
		for i := range b.hits {
			if b.hits[i].pid != int64(w.PID) {
				others[b.hits[i].pid]++
			}
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 4999
		c.ReportInterval = 250 * time.Millisecond
		c.OffCPU.GetOrInsertDefault().Threshold = 1
		c.Targets.Include = []customlabelsreceiver.TargetSelector{{Executable: program}}
	})
	stop := startStorm("/bin/true")
	time.Sleep(size(5*time.Second, 0, 0))
	assert.Eventually(t, func() bool {
		filtered := r.metric("filtered_samples", "reason")
		return filtered["target"] > 0 && filtered["unknown_process"] > 0 && r.metric("emitted_samples")[""] > 0
	}, 3*time.Minute, 50*time.Millisecond)
	require.GreaterOrEqual(t, r.metric("pending_samples")[""], int64(0))
	stop()
	r.stop()
	cpu, switches := r.account(), r.switchAccount()
	_, received := out.received()
	fmt.Printf("hits %d = emitted %d + filtered (target %d, unknown_process %d, idle %d) + dropped %d\n", cpu["hits"], cpu["emitted"],
		cpu["filtered_target"], cpu["filtered_unknown_process"], cpu["filtered_idle"], cpu["dropped_ring_full"]+cpu["dropped_pending_full"])
	fmt.Printf("switches %v\n", switches)
	requireClosed(t, cpu)
	requireClosed(t, switches)
	require.EqualValues(t, received, cpu["emitted"]+switches["emitted"])
	require.Empty(t, others)
	require.NotZero(t, cpu["emitted"])
	require.NotZero(t, cpu["filtered_target"])
	require.NotZero(t, cpu["filtered_unknown_process"])
}
