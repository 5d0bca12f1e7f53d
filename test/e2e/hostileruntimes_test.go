//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	runtimeNice     = 19
	runtimeMinWhole = pythonMinWhole
	// runtimeStall is how long nothing new may come of any program that lacks something.
	runtimeStall  = 3 * time.Minute
	hostileChains = 499 // samples a second: a hundred stacks of them, each as deep as can be, are much to judge
	// runtimeMemory is what the receiver may take, runtimeHeap by how much the process may grow that
	// the test is in, too.
	runtimeMemory = 128 << 20
	runtimeHeap   = 2 * runtimeMemory
	// runtimeMaxCPU is the share of one CPU that the process may take.
	runtimeMaxCPU = 1.0
	// greedyUser has the programs with more functions than are kept of one user, hostileUser the others.
	greedyUser  = 20003
	hostileUser = 20004
)

var (
	runtimeSamples = size(200, 20, 5)     // of each hostile program
	besideSamples  = size(5_000, 200, 50) // of the program beside them
)

// greedy are the modes in which a program has more functions than are kept of one user.
var greedy = map[string]bool{"too-many": true, "large": true}

// A hostileRuntime is what may become of a program that says that it is a language runtime.
type hostileRuntime struct {
	functions *regexp.Regexp // that its frames may name, and must at least once; nil: it has no frames
	log       string         // is in what the log says of its file; "": nothing is logged
	either    bool           // it may have frames or not, and the log may say so
}

// A runtimeProcess is a hostile program and what arrived of it.
type runtimeProcess struct {
	hostileRuntime
	mode          string
	kind          string // of its frames
	path          string // of its executable
	samples       int
	stopped       bool
	frames, wrong map[string]int // by function
}

func (p *runtimeProcess) String() string {
	names := slices.Sorted(maps.Keys(p.frames))
	return fmt.Sprintf("%-7s %-18s %4d samples; %.200q", p.kind, p.mode, p.samples, names[:min(3, len(names))])
}

// runtimeSink keeps the stacks of one honest program and the labels of others, and judges the
// stacks of hostile ones.
type runtimeSink struct {
	chainSink
	file    string // what the functions of hostile programs are from
	hostile map[int64]*runtimeProcess
	strayed map[string]int // functions of hostile programs in other processes
	results bool           // each of runtimeResults was counted: what has no functions is needed for no other
	labels  sink

	judging sync.Mutex
}

func (s *runtimeSink) ConsumeProfiles(ctx context.Context, p pprofile.Profiles) error {
	s.judging.Lock()
	defer s.judging.Unlock()
	visitStacks(p, func(int64) bool { return true }, func(pid int64, stack *chainStack, times []uint64) {
		of := s.hostile[pid]
		if of != nil {
			of.samples += len(times)
		}
		for _, f := range stack.frames {
			switch {
			case of == nil && f.file == s.file: // of this run: there may be others
				s.strayed[f.name]++
			case of == nil || f.kind == "native" || f.kind == "kernel" || f.kind == "":
			case of.functions != nil && f.kind == of.kind && of.functions.MatchString(f.name):
				of.frames[f.name]++
			case of.functions != nil && f.kind == of.kind && f.name == goneFunction: // not read yet
			default:
				of.wrong[fmt.Sprintf("%+v", f)]++
			}
		}
	})
	if err := s.labels.ConsumeProfiles(ctx, p); err != nil {
		return err
	}
	return s.chainSink.ConsumeProfiles(ctx, p)
}

// lacks returns the hostile programs that have not been judged often enough, and how much there is of all
// that is asked for. The others are stopped: the CPUs are for those. What is greedy goes on.
func (s *runtimeSink) lacks() (modes []string, has int) {
	s.judging.Lock()
	defer s.judging.Unlock()
	for pid, p := range s.hostile {
		has += min(p.samples, runtimeSamples) + min(len(p.frames), 1)
		if p.samples < runtimeSamples || p.functions != nil && !p.either && len(p.frames) == 0 {
			modes = append(modes, p.String())
		} else if !p.stopped && !greedy[p.mode] && (p.functions != nil || s.results) {
			p.stopped = true
			_ = unix.Kill(int(pid), unix.SIGSTOP)
		}
	}
	return modes, has
}

// runtimeResults are what all of them together lead to.
func runtimeResults() []string {
	return []string{
		"stack_whole", "stack_cut", "stack_no_thread", "stack_invalid",
		"function_read", "function_gone", "function_no_room", "file_unsupported", "file_unreadable",
	}
}

// missing returns how many of runtimeResults were not counted yet.
func (s *runtimeSink) missing(results map[string]int64) (n int) {
	for _, result := range runtimeResults() {
		if results[result] == 0 {
			n++
		}
	}
	s.judging.Lock()
	defer s.judging.Unlock()
	s.results = n == 0
	return n
}

// start runs a hostile program, whose file no other has.
func (s *runtimeSink) start(program, kind, mode string, want hostileRuntime, args ...string) {
	uid := hostileUser
	if greedy[mode] {
		uid = greedyUser
	}
	w := startUser(s.t.(*testing.T), program, uid, runtimeNice, args...)
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", w.PID))
	require.NoError(s.t, err)
	w.Signal(syscall.SIGSTOP) // so that the next ones start quickly
	s.hostile[int64(w.PID)] = &runtimeProcess{
		hostileRuntime: want, mode: mode, kind: kind, path: path, frames: map[string]int{}, wrong: map[string]int{},
	}
}

// watchFile makes a file that one user may read only, and returns what tells how often it was opened.
func watchFile(t *testing.T) (path string, opened func() int) {
	t.Helper()
	path = filepath.Join(userDir(t, quietUser), "file")
	require.NoError(t, os.WriteFile(path, []byte("of another user\n"), 0o600))
	require.NoError(t, os.Chown(path, quietUser, quietUser))
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_ACCESS)
	require.NoError(t, err)
	return path, func() int {
		n, _ := unix.Read(fd, make([]byte, 64<<10)) // EAGAIN: nothing
		return max(0, n/unix.SizeofInotifyEvent)
	}
}

// whileItGrows asks for as long as there comes to be more, or all, and reports whether there is all.
func whileItGrows(stall time.Duration, ask func() (has int, all bool)) bool {
	most, grown := math.MinInt, time.Now()
	for time.Since(grown) < stall {
		has, all := ask()
		if all {
			return true
		}
		if has > most {
			most, grown = has, time.Now()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// TestHostileRuntimes runs programs that say that they are CPython, HotSpot or V8, with lists and
// tables that do not end, pointers to nowhere, code of other files, names that are none, more and
// larger functions than are kept, and functions that go. They get frames of their own or none,
// and cost the receiver little; programs beside them have all of theirs, and their labels.
func TestHostileRuntimes(t *testing.T) {
	testutil.RequireBPF(t)
	commands := pythons()
	require.NotEmpty(t, commands, "no CPython 3.11 to 3.14")
	testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
		file, opened := watchFile(t)
		out := &runtimeSink{
			chainSink: chainSink{t: t, warm: isWarmPython}, file: file,
			hostile: map[int64]*runtimeProcess{}, strayed: map[string]int{},
		}
		const python = "../../testdata/hostile/python.c"
		program, unsupported := compileProgram(t, python, "-rdynamic"), compileProgram(t, python, "-rdynamic", "-DBAD_OFFSET")
		for mode, want := range hostilePythons() {
			path := program
			if mode == unsupportedPython {
				path = unsupported
			}
			out.start(path, frameCPython, mode, want, mode, file)
		}
		const hotSpot = "../../testdata/hostile/hotspot.c"
		program = compileProgram(t, hotSpot, "-rdynamic", "-pthread")
		for mode, want := range hostileHotSpots() {
			out.start(program, frameJVM, mode, want, mode, file)
		}
		library := compileProgram(t, hotSpot, "-DLIBRARY", "-shared", "-fPIC", "-pthread")
		out.start(compileProgram(t, hotSpot, "-DMAIN", "-Wl,--no-as-needed", library), frameJVM, "in a library", hostileHotSpots()["valid"], "valid", file)
		if runtime.GOARCH == "amd64" {
			program, types := compileHostileV8(t, v8Node(t), "hostilev8.c")
			out.start(program, frameV8, "nonsense", hostileRuntime{functions: regexp.MustCompile(`(?s)^.*$`)}, types...)
		}
		good := map[int64]*goodWriter{}
		for _, variant := range []string{"writer-v1-exe", "writer-ctx-exe"} {
			w := startUser(t, filepath.Join(testutil.BuildWriters(t), variant), quietUser, hostileNice, "fidelity", "--seconds", "900")
			good[int64(w.PID)] = &goodWriter{variant: variant, publishes: map[uint32]bool{}}
		}
		out.labels = sink{t: t, visit: func(b flatBatch) {
			for i := range b.hits {
				if w := good[b.hits[i].pid]; w != nil {
					w.add(&b.hits[i])
				}
			}
		}}
		w, facts := startPython(t, commands[0], "threads")
		honest := int64(w.PID)
		out.follow(honest)

		for pid := range out.hostile {
			require.NoError(t, unix.Kill(int(pid), unix.SIGCONT))
		}
		runtime.GC()
		before, begun, used := heapBytes(), time.Now(), ownCPU(t)
		r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
			atRate(hostileChains)(c)
			c.MaxMemoryBytes = runtimeMemory
		}, manySets)
		memory, heap := int64(0), int64(0)
		said := func() map[string][]string {
			all := map[string][]string{}
			for _, line := range r.logs.FilterMessage(logUnknownRuntime).All() {
				file := line.ContextMap()["file"].(string)
				all[file] = append(all[file], line.ContextMap()["error"].(string))
			}
			return all
		}
		// What makes no sense may be starting, for some seconds.
		unexplained := func() (modes []string) {
			all := said()
			for _, p := range out.hostile {
				if p.log != "" && !p.either && len(all[p.path]) == 0 {
					modes = append(modes, p.mode)
				}
			}
			return modes
		}
		enough := whileItGrows(runtimeStall, func() (has int, all bool) {
			sum := int64(0)
			for _, n := range r.metric("memory_used", "part") {
				sum += n
			}
			memory, heap = max(memory, sum), max(heap, heapBytes()-before)
			lack, has := out.lacks()
			wanted := unexplained()
			missing := out.missing(r.metric("runtime_results", "result"))
			return has - len(wanted) - missing, len(lack) == 0 && len(wanted) == 0 && missing == 0
		})
		if !enough {
			r.stop()
			for _, p := range out.hostile {
				t.Logf("%v; wrong %.300q", p, slices.Collect(maps.Keys(p.wrong)))
			}
			lack, _ := out.lacks()
			require.Empty(t, lack, "%v", r.metric("runtime_results", "result"))
			require.Empty(t, unexplained(), "%v", said())
		}
		all, whole := 0, 0
		for _, stack := range out.take(honest, besideSamples) {
			all += stack.samples
			only := pythonOnly(stack.frames)
			for _, f := range only {
				require.True(t, facts[f] || f.name == goneFunction, "%+v is in no program", f)
			}
			if wholeChain(chainOf(only)) {
				whole += stack.samples
			}
		}
		memory, heap = max(memory, r.metric("memory_used", "part")["processes"]), max(heap, heapBytes()-before)
		cpu := (ownCPU(t) - used).Seconds() / time.Since(begun).Seconds()
		results := r.metric("runtime_results", "result")
		r.stop()

		reasons := said()
		for _, p := range out.hostile {
			t.Logf("%v; %v", p, reasons[p.path])
			assert.Empty(t, p.wrong, "%s %s", p.kind, p.mode)
			switch {
			case p.either:
				assert.LessOrEqual(t, len(reasons[p.path]), 1, p.mode)
			case p.log == "":
				assert.Empty(t, reasons[p.path], p.mode)
			default:
				assert.Len(t, reasons[p.path], 1, p.mode)
				assert.Contains(t, strings.Join(reasons[p.path], ""), p.log, p.mode)
			}
		}
		t.Logf("beside them: %d samples, %.2f %% whole; %v", all, 100*float64(whole)/float64(all), results)
		t.Logf("memory: at most %.1f of %d MiB as the receiver counts it, %.1f MiB of Go's heap with the test; %.2f CPUs with the test",
			float64(memory)/(1<<20), runtimeMemory>>20, float64(heap)/(1<<20), cpu)
		require.Empty(t, out.strayed, "functions of hostile programs in others")
		require.Zero(t, opened(), "a file that only another user may read was opened")
		for _, w := range good {
			w.check(t)
		}
		require.Zero(t, r.account()["dropped_no_memory"])
		require.Less(t, memory, int64(runtimeMemory))
		require.Less(t, heap, int64(runtimeHeap))
		for _, result := range runtimeResults() {
			assert.Positive(t, results[result], result)
		}
		assert.Less(bounds, cpu, runtimeMaxCPU)
		assertShare(bounds, whole, all, runtimeMinWhole, "samples with the whole chain")
	})
}
