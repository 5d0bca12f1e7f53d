//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	// briefLife of a process, from its main on.
	briefLife = 50 * time.Millisecond
	// briefGap between two starts; now and then briefBurst start at once.
	briefGap   = 12 * time.Millisecond
	briefBurst = 4
	// firstLife is that of the first instance of each program, by which it becomes known.
	firstLife    = time.Minute
	knownTimeout = 5 * time.Minute
)

// goalBrief is the share of the processes that were hit while they had labels.
const goalBrief = 0.99

// ownVariant has its labels where its file alone says, so that they are read from the
// first instant on. For others and for names of functions, the process has to be looked at
// while it lives, for which a busy machine may not have the time.
const ownVariant = "writer-v1-exe"

var (
	briefLives    = size(1000, 100, 100) // at each rate
	briefVariants = []string{"writer-v1-exe", "writer-v1-lib", "writer-ctx-exe", "writer-v0-lib"}
)

// A life is what a process says of itself at its end; CLOCK_MONOTONIC.
type life struct {
	variant          string
	pid              int
	value            string // of the label
	published, until uint64 // when it was there
	cpuNs            uint64
}

// A briefSample is one hit of such a process, as it was emitted.
type briefSample struct {
	timeUnixNano uint64
	value        string
	whole        bool // the stack
	functions    []string
}

// A briefSink collects the samples of short-lived writers, by PID.
type briefSink struct {
	mu      sync.Mutex
	samples map[int64][]briefSample
}

func (s *briefSink) visit(b flatBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.hits {
		h := &b.hits[i]
		value := h.attrs[prefix+"life"]
		if value == "" {
			value = h.attrs["life"] // of a thread context
		}
		s.samples[h.pid] = append(s.samples[h.pid], briefSample{
			timeUnixNano: h.timeUnixNano, value: value, functions: h.functions,
			whole: h.attrs["custom_labels.stack_truncated"] == "" && len(h.functions) > 0,
		})
	}
}

// known reports whether a process has had a sample with labels and one with its whole stack.
func (s *briefSink) known(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	labels, stack := false, false
	for i := range s.samples[int64(pid)] {
		sample := &s.samples[int64(pid)][i]
		labels = labels || sample.value != ""
		stack = stack || sample.reachesMain()
	}
	return labels && stack
}

// reachesMain reports whether a stack has the writer's own functions up to its entry.
func (s *briefSample) reachesMain() bool {
	n := len(s.functions)
	return s.whole && n > 0 && strings.HasSuffix(s.functions[n-1], "_start") && slices.Contains(s.functions, "main")
}

// TestShortLived: processes that live for 50 ms, of programs that were seen before. Those
// that a perf event has hit have samples, with their whole stacks and their labels.
func TestShortLived(t *testing.T) {
	testutil.RequireBPF(t)
	dir := testutil.BuildWriters(t)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	defer stats.Close()
	for _, hz := range []int{97, 997} {
		testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) { measureShortLived(t, bounds, dir, hz) })
	}
}

func measureShortLived(t *testing.T, bounds *testutil.Bounds, dir string, hz int) {
	out := &briefSink{samples: map[int64][]briefSample{}}
	r := startReceiver(t, &sink{t: t, visit: out.visit}, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = hz
		c.ReportInterval = 500 * time.Millisecond
	})
	awaitKnown(t, dir, out)
	program := samplingProgramOf(t, os.Getpid())
	others := othersCPU(t)
	lives := runBriefLives(t, dir)
	taken := others()
	r.stop()
	fmt.Printf("%d Hz, %d processes of %v\n", hz, len(lives), briefLife)
	requireEachHitSampled(t, bounds, program, r.account(), taken)
	reportBriefLives(t, bounds, lives, out, taken)
}

// samplingProgramOf returns the program that a process has on perf events.
func samplingProgramOf(t *testing.T, pid int) *ebpf.Program {
	t.Helper()
	for _, id := range kernelObjectsOf(t, pid).programs {
		program, err := ebpf.NewProgramFromID(id)
		require.NoError(t, err)
		if program.Type() == ebpf.PerfEvent {
			return program
		}
		require.NoError(t, program.Close())
	}
	require.Fail(t, "the process samples nothing")
	return nil
}

// requireEachHitSampled holds the samples against the kernel's own count of hits: the runs
// of the program. The test may be too slow a consumer where others take the CPUs.
func requireEachHitSampled(t *testing.T, bounds *testutil.Bounds, program *ebpf.Program, account map[string]int64, others float64) {
	t.Helper()
	stats, err := program.Stats()
	require.NoError(t, err)
	require.NoError(t, program.Close())
	late := account["dropped_pending_full"] + account["dropped_user_share"] + account["dropped_ring_full"]
	fmt.Printf("hits as the kernel counts them %d = samples %d + of the idle task %d + dropped where a reader or the consumer was late %d\n",
		stats.RunCount, account["emitted"], account["filtered_idle"], late)
	require.EqualValues(t, stats.RunCount, account["emitted"]+account["filtered_idle"]+late, "%v", account)
	if others <= maxOthersCPU {
		require.Zero(bounds, late)
	}
}

// awaitKnown runs a first instance of each program until it is known.
func awaitKnown(t *testing.T, dir string, out *briefSink) {
	t.Helper()
	for _, variant := range briefVariants {
		require.Eventually(t, func() bool { return becomesKnown(t, filepath.Join(dir, variant), out) }, knownTimeout, time.Millisecond, variant)
	}
}

// becomesKnown reports whether an instance of a program has become known while it lived.
func becomesKnown(t *testing.T, program string, out *briefSink) (known bool) {
	cmd := exec.Command(program, "brief", "--life-ms", fmt.Sprint(firstLife.Milliseconds()))
	if !assert.NoError(t, cmd.Start()) {
		return false
	}
	for end := time.Now().Add(firstLife); !known && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		known = out.known(cmd.Process.Pid)
	}
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()         // says that it was killed
	return known
}

// runBriefLives runs all the processes, and returns what they say.
func runBriefLives(t *testing.T, dir string) []life {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	said := make(chan []life, 1)
	go func() { said <- readLives(read) }()
	variants := map[int]string{}
	var running sync.WaitGroup
	for i := 0; i < briefLives; {
		burst := 1
		if i%10 == 0 {
			burst = briefBurst
		}
		for range burst {
			variant := briefVariants[i%len(briefVariants)]
			cmd := exec.Command(filepath.Join(dir, variant), "brief", "--life-ms", fmt.Sprint(briefLife.Milliseconds()))
			cmd.Stdout = write
			require.NoError(t, cmd.Start())
			variants[cmd.Process.Pid] = variant
			running.Go(func() { _ = cmd.Wait() }) // those that say nothing are missed below
			i++
		}
		time.Sleep(time.Duration(burst) * briefGap)
	}
	running.Wait()
	require.NoError(t, write.Close())
	lives := <-said
	require.GreaterOrEqual(t, len(lives), briefLives)
	for i := range lives {
		lives[i].variant = variants[lives[i].pid]
	}
	return lives
}

// readLives reads what processes say until the last one has ended.
func readLives(r *os.File) (lives []life) {
	defer r.Close()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var l life
		if _, err := fmt.Sscanf(lines.Text(), "life %d %s %d %d %d", &l.pid, &l.value, &l.published, &l.until, &l.cpuNs); err == nil {
			lives = append(lives, l)
		}
	}
	return lives
}

// A briefTally counts processes that were hit while they had labels, and these hits.
type briefTally struct {
	lives, hit, whole, named, labelled       int
	hits, hitsWhole, hitsNamed, hitsLabelled int
	cpu                                      time.Duration
}

func (n *briefTally) add(l *life, samples []briefSample, toUnix uint64) (wrong int) {
	n.lives++
	n.cpu += time.Duration(l.cpuNs)
	before := *n
	for i := range samples {
		s := &samples[i]
		if s.value != "" && s.value != l.value {
			wrong++
		}
		if s.timeUnixNano < l.published+toUnix || s.timeUnixNano > l.until+toUnix {
			continue
		}
		n.hits++
		n.hitsWhole += count(s.whole)
		n.hitsNamed += count(s.reachesMain())
		n.hitsLabelled += count(s.value != "")
	}
	n.hit += count(n.hits > before.hits)
	n.whole += count(n.hitsWhole > before.hitsWhole)
	n.named += count(n.hitsNamed > before.hitsNamed)
	n.labelled += count(n.hitsLabelled > before.hitsLabelled)
	return wrong
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// reportBriefLives prints what came of the processes. No label may be wrong, and those of
// ownVariant are there however busy the machine is. Whole stacks take rows, which the
// receiver makes in time where others leave it the CPUs.
func reportBriefLives(t *testing.T, bounds *testutil.Bounds, lives []life, out *briefSink, others float64) {
	t.Helper()
	toUnix := monoToUnix(t)
	all, byVariant := &briefTally{}, map[string]*briefTally{}
	wrong := 0
	for i := range lives {
		l := &lives[i]
		if byVariant[l.variant] == nil {
			byVariant[l.variant] = &briefTally{}
		}
		wrong += all.add(l, out.samples[int64(l.pid)], toUnix)
		byVariant[l.variant].add(l, out.samples[int64(l.pid)], toUnix)
	}
	fmt.Printf("of processes that were hit while they had labels, with (of such hits, with)\n")
	fmt.Printf("%-16s %7s %6s %7s %18s %18s %18s\n", "", "CPU ms", "hit", "hits", "whole stack", "with names", "labels")
	of := func(n, of, hits, ofHits int) string {
		return fmt.Sprintf("%6.2f%% (%6.2f%%)", 100*share(n, of), 100*share(hits, ofHits))
	}
	for _, name := range append(briefVariants, "all") {
		n := byVariant[name]
		if name == "all" {
			n = all
		}
		fmt.Printf("%-16s %7.1f %6d %7d %18s %18s %18s\n", name, n.cpu.Seconds()*1000/float64(n.lives), n.hit, n.hits,
			of(n.whole, n.hit, n.hitsWhole, n.hits), of(n.named, n.hit, n.hitsNamed, n.hits), of(n.labelled, n.hit, n.hitsLabelled, n.hits))
	}
	fmt.Printf("wrong labels %d\n", wrong)
	require.Zero(t, wrong)
	require.NotZero(bounds, all.hit)
	own := byVariant[ownVariant]
	require.GreaterOrEqual(bounds, share(own.labelled, own.hit), goalBrief, "processes of %s with labels", ownVariant)
	if measurable(others) {
		require.GreaterOrEqual(bounds, share(all.whole, all.hit), goalBrief, "processes with a whole stack")
	}
}
