//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	// churnEnv is how long TestChurn churns, as a duration.
	churnEnv  = "CUSTOM_LABELS_CHURN"
	churnRate = 500 // processes a second
	// churnPatience bounds how much longer it churns until all has been seen.
	churnPatience = 3 * time.Minute
	// churnPIDs is the namespace's pid_max, of which the kernel gives those below 300 only
	// once: a PID is used again after a second.
	churnPIDs = 700
	// churnNamespaceEnv tells the test that it runs in the namespace.
	churnNamespaceEnv = "CUSTOM_LABELS_TEST_CHURN_NAMESPACE"
)

// inherited is the part of a life whose label a forked child has, too.
const inherited = "p"

// What memory may have grown by, and the table by what else happens on the machine.
const (
	maxHeapGrowth     = 16 << 20
	maxResidentGrowth = 64 << 20
	maxMapGrowth      = 4 << 20
	maxTableGrowth    = 1000
	maxEntryGrowth    = 20
)

// TestChurn starts and ends processes in all ways, with few PIDs, and holds each label
// against the process and the thread that has it. What the receiver holds afterwards is
// what it held before. It runs itself again in a PID namespace, whose PIDs the receiver
// sees.
func TestChurn(t *testing.T) {
	testutil.RequireBPF(t)
	if os.Getenv(churnNamespaceEnv) != "" {
		churnInNamespace(t)
		return
	}
	dir := testutil.BuildWriters(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+2*churnTime(t))
	defer cancel()
	script := `"$0" -test.run '^TestChurn$' -test.v` // the shell stays, and waits for processes without a parent
	if ownPIDMax(t) {
		script = fmt.Sprintf("echo %d > /proc/sys/kernel/pid_max && %s", churnPIDs, script)
	} else {
		fmt.Println("before Linux 6.14 a namespace has no pid_max of its own: PIDs are not used again")
	}
	cmd := exec.CommandContext(ctx, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "/proc/self/exe")
	self, err := os.Executable()
	require.NoError(t, err)
	cmd.Args[len(cmd.Args)-1] = self
	cmd.Env = append(os.Environ(), churnNamespaceEnv+"=1", testutil.WritersEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, "churn: "); ok {
			fmt.Print(rest)
		}
	}
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestChurn")
}

// churnTime is how long it takes.
func churnTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(churnEnv)
	if text == "" {
		return size(20*time.Second, 3*time.Second, 3*time.Second)
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// ownPIDMax reports whether each PID namespace has a kernel.pid_max of its own.
func ownPIDMax(t *testing.T) bool {
	t.Helper()
	var uts unix.Utsname
	require.NoError(t, unix.Uname(&uts))
	var major, minor int
	_, err := fmt.Sscanf(unix.ByteSliceToString(uts.Release[:]), "%d.%d", &major, &minor)
	require.NoError(t, err)
	return major > 6 || major == 6 && minor >= 14
}

// A churnTally judges the labels of churning processes.
type churnTally struct {
	mu                    sync.Mutex
	labelled, without     int
	processes, reusedPIDs map[string]bool
	wrong                 []string
	byPart                map[byte]int
	memfd, deleted        int
}

// visit holds each label against the sample's own thread and process: it is the thread's
// name, and begins with the PID; but a child has its parent's until it has removed that.
func (n *churnTally) visit(b flatBatch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range b.hits {
		h := &b.hits[i]
		value := h.attrs[prefix+"life"]
		if value == "" {
			n.without++
			continue
		}
		n.labelled++
		pid := strconv.FormatInt(h.pid, 10)
		rest := strings.TrimLeft(value, "0123456789")
		own := strings.TrimSuffix(value, rest) == pid
		if rest == "" || !own && rest != inherited || h.attrs["thread.name"] != value {
			n.wrong = append(n.wrong, fmt.Sprintf("PID %d, thread %q: label %q", h.pid, h.attrs["thread.name"], value))
			continue
		}
		n.byPart[rest[0]]++
		if !own {
			continue
		}
		if n.processes[pid] && !n.processes[value] {
			n.reusedPIDs[pid] = true
		}
		n.processes[pid], n.processes[value] = true, true
		path := h.resource["process.executable.path"]
		n.memfd += count(strings.Contains(path, "memfd:"))
		n.deleted += count(strings.Contains(path, "/churn-"))
	}
}

func churnInNamespace(t *testing.T) {
	dir := testutil.BuildWriters(t)
	manyThreads(64)
	tally := &churnTally{processes: map[string]bool{}, reusedPIDs: map[string]bool{}, byPart: map[byte]int{}}
	r := startReceiver(t, &sink{t: t, visit: tally.visit}, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 997
		c.ReportInterval = 250 * time.Millisecond
	}, func(o *pipeline.Options) { o.Symbols.MaxBytes = 2 << 20 /* full soon */ })
	churn(t, dir, size(3*time.Second, time.Second, 3*time.Second)) // whatever is made once is made now
	time.Sleep(2 * time.Second)                                    // processes stay for a batch or two
	settledKernelObjectsOf(t, os.Getpid(), kernelObjects.ownCounts)
	before := holdingsOf(t, r)
	fmt.Printf("churn: before: %v\n", before)
	said := churn(t, dir, churnTime(t))
	// A busy machine starts fewer processes, and gives each less time to be sampled.
	for end := time.Now().Add(churnPatience); tally.lacks(t) != "" && time.Now().Before(end); {
		said += "; " + churn(t, dir, time.Second)
	}
	after := holdingsOf(t, r)
	for range 600 {
		if after.near(before) {
			break
		}
		time.Sleep(200 * time.Millisecond)
		after = holdingsOf(t, r)
	}
	fmt.Printf("churn: after:  %v\n", after)
	during := kernelObjectsOf(t, os.Getpid())
	events := r.metric("dropped_process_events")[""]
	r.stop()
	account := r.account()
	tally.report(t, said, events)
	requireClosed(t, account)
	require.True(t, after.near(before), "before %v, after %v", before, after)
	during.requireGone(t)
}

// manyThreads has Go's runtime start threads, which it keeps: it ends the program when it needs one and no PID is left.
func manyThreads(n int) {
	var met, done sync.WaitGroup
	met.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			met.Done()
			met.Wait()
		})
	}
	done.Wait()
}

// churn runs the program that starts the others, and returns what it says at its end.
func churn(t *testing.T, dir string, d time.Duration) string {
	t.Helper()
	var said strings.Builder
	cmd := exec.Command(filepath.Join(dir, "writer-v1-exe"), "churn", "--rate", fmt.Sprint(churnRate), "--seconds", fmt.Sprint(d.Seconds()))
	cmd.Stderr = &said
	cmd.WaitDelay = 2 * time.Minute // its last children have it, too
	require.NoError(t, cmd.Run(), "%s", said.String())
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	require.Len(t, lines, 1, "%s", said.String())
	return lines[0]
}

func (n *churnTally) report(t *testing.T, said string, lostEvents int64) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Printf("churn: %s; %d samples with labels (and %d of all programs without), %d PIDs of them met again in another process, %d wrong labels; %d events lost\n",
		said, n.labelled, n.without, len(n.reusedPIDs), len(n.wrong), lostEvents)
	parts := map[string]int{}
	for part, samples := range n.byPart {
		parts[string(part)] = samples
	}
	fmt.Printf("churn: samples by part of a life: %v; of memfd executables %d, of deleted ones %d\n", parts, n.memfd, n.deleted)
	require.Empty(t, n.wrong)
	require.Empty(t, n.missing(t))
}

// lacks is what has not been seen yet; "" if nothing.
func (n *churnTally) lacks(t *testing.T) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.missing(t)
}

// missing is lacks with the lock held.
func (n *churnTally) missing(t *testing.T) string {
	var missing []string
	for _, part := range "xpclterab" {
		if n.byPart[byte(part)] == 0 {
			missing = append(missing, fmt.Sprintf("samples of part %c", part))
		}
	}
	if n.memfd == 0 {
		missing = append(missing, "samples of a memfd executable")
	}
	if n.deleted == 0 {
		missing = append(missing, "samples of a deleted executable")
	}
	if ownPIDMax(t) && len(n.reusedPIDs) == 0 {
		missing = append(missing, "a PID met again")
	}
	return strings.Join(missing, ", ")
}

// holdings is what a receiver holds.
type holdings struct {
	kernelObjectCounts
	goroutines     int
	table          int64
	unwindTables   int   // open
	countedTables  int64 // of these, by the receiver's own count
	heap, resident uint64
	mapBytes       uint64
	mapEntries     map[string]int // of maps of processes
}

func (h *holdings) String() string {
	return fmt.Sprintf("%d processes in the table, %.1f MiB heap, %.1f MiB resident, %.1f MiB of BPF maps, entries %v, %d goroutines, %d tables of rows, %d by its own count, %+v",
		h.table, float64(h.heap)/(1<<20), float64(h.resident)/(1<<20), float64(h.mapBytes)/(1<<20), h.mapEntries, h.goroutines,
		h.unwindTables, h.countedTables, h.kernelObjectCounts)
}

// near reports whether nothing has been left behind since before.
func (h *holdings) near(before *holdings) bool {
	near := h.kernelObjectCounts == before.kernelObjectCounts && h.goroutines <= before.goroutines+1 &&
		h.unwindTables <= int(h.countedTables) &&
		h.table <= before.table+maxTableGrowth && h.heap <= before.heap+maxHeapGrowth &&
		h.resident <= before.resident+maxResidentGrowth && h.mapBytes <= before.mapBytes+maxMapGrowth
	for name, n := range h.mapEntries {
		near = near && n <= before.mapEntries[name]+maxEntryGrowth
	}
	return near
}

func holdingsOf(t *testing.T, r *running) *holdings {
	t.Helper()
	objects := kernelObjectsOf(t, os.Getpid())
	h := &holdings{
		kernelObjectCounts: objects.ownCounts(), goroutines: runtime.NumGoroutine(), mapEntries: map[string]int{},
		unwindTables: len(objects.tables), countedTables: r.metric("unwind_tables")[""],
	}
	for _, id := range objects.maps {
		m, err := ebpf.NewMapFromID(id)
		require.NoError(t, err)
		h.addMap(t, m)
		require.NoError(t, m.Close())
	}
	h.table = r.metric("tracked_processes")[""]
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	h.heap = mem.HeapAlloc
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var size, resident uint64
	_, err = fmt.Sscan(string(text), &size, &resident)
	require.NoError(t, err)
	h.resident = resident * uint64(os.Getpagesize())
	return h
}

func (h *holdings) addMap(t *testing.T, m *ebpf.Map) {
	t.Helper()
	info, err := m.Info()
	require.NoError(t, err)
	if bytes, ok := info.Memlock(); ok {
		h.mapBytes += bytes
	}
	switch info.Name {
	case "processes", "label_sources", "unwind_mappings":
	default:
		return
	}
	key := make([]byte, info.KeySize)
	n := 0
	for err = m.NextKey(nil, key); err == nil; err = m.NextKey(key, key) {
		n++
	}
	if !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Logf("map %s: %v", info.Name, err)
	}
	h.mapEntries[info.Name] += n
}
