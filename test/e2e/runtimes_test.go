//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/conformance"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

var (
	pythonSamples = size(100_000, 1_600, 500) // of all versions
	pythonRate    = size(1999, 1999, 499)
)

// pythonMinWhole is the least share of samples that have the whole known chain.
const pythonMinWhole = 0.99

const (
	frameCPython = "cpython"
	goneFunction = "<gone>"
)

// pythonChains are the stacks that testdata/runtimes/chains.py may have, outermost first, Python frames only.
var pythonChains = func() *regexp.Regexp {
	const (
		burn    = `(>burn)?`
		numbers = `(>numbers` + burn + `)?`
	)
	scenario := "(" + strings.Join([]string{
		`recursion((>descend){0,200}|(>descend){201}` + burn + `)`,
		`generator` + numbers,
		`native_generator` + numbers,
		`callback(>key` + burn + `)?`,
		`nested_callback(>reducer(>reducer\.<locals>\.<lambda>` + burn + `)?)?`,
		`exception((>failing){0,6}|(>failing){1,5}` + burn + `|` + burn + `)`,
		`methods(>Shape\.area` + burn + `|>Shape\.__lt__` + burn + `|>Shape\.make(>Shape\.make\.<locals>\.closure` + burn + `)?)?`,
		`comprehension(>comprehension\.<locals>\.<listcomp>)?` + burn,
		`größe` + burn,
	}, "|") + ")"
	sub := `<module>(>subdescend){0,6}|<module>(>subdescend){6}>subburn`
	thread := `Thread\._bootstrap>Thread\._bootstrap_inner>(Thread|_.*)\.run>(worker(>` + scenario + `)?|subthread>(` + sub + `))`
	event := `coroutine(>.*)?` // the event loop's own functions
	return regexp.MustCompile(`^(` + thread + `|<module>(>` + event + `|>subinterpreter>(` + sub + `))?)$`)
}()

// awaited is the chain that leads through most files.
var awaited = regexp.MustCompile(
	`^<module>>coroutine>BaseEventLoop\.run_until_complete>BaseEventLoop\.run_forever>BaseEventLoop\._run_once>Handle\._run>outer(>inner(>burn|>sleep.*)?)?$`)

// warmPython is a chain of a process of which enough is known.
var warmPython = regexp.MustCompile(awaited.String() + `|^<module>>subinterpreter><module>>`)

// wholeChain reports whether it is one of the program.
func wholeChain(chain string) bool {
	return pythonChains.MatchString(chain) && (!strings.Contains(chain, ">outer") || awaited.MatchString(chain))
}

type pythonFrame struct {
	name, file, kind string
	line, start      int64
}

// pythonSink keeps what was said of the stacks of each process.
type pythonSink struct {
	t testing.TB

	mu     sync.Mutex
	stacks map[int64]map[string]*pythonStack // by process, then by all that is in the stack
	// since is when each process had its first such chain and a while more: what was sampled
	// before the rows of its files were there is not looked at.
	since map[int64]uint64
}

// pythonWarm is how long a process is left out after that.
const pythonWarm = time.Second

// A pythonStack is leaf first.
type pythonStack struct {
	frames  []pythonFrame
	samples int
}

func (s *pythonSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *pythonSink) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	for i, err := range conformance.Check(p) {
		if i == 10 {
			break
		}
		assert.NoError(s.t, err, "conformance")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dict := p.Dictionary()
	for _, rp := range p.ResourceProfiles().All() {
		pid, _ := rp.Resource().Attributes().Get("process.pid")
		of := s.stacks[pid.Int()]
		if of == nil {
			continue
		}
		for _, sample := range rp.ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
			frames := pythonFrames(dict, sample.StackIndex())
			since, n := s.since[pid.Int()], 0
			for _, at := range sample.TimestampsUnixNano().All() {
				switch {
				case since == 0 && warmPython.MatchString(chainOf(pythonOnly(frames))):
					since = at + uint64(pythonWarm)
					s.since[pid.Int()] = since
				case since != 0 && at >= since:
					n++
				}
			}
			if n == 0 {
				continue
			}
			key := fmt.Sprint(frames)
			if of[key] == nil {
				of[key] = &pythonStack{frames: frames}
			}
			of[key].samples += n
		}
	}
	return nil
}

func pythonFrames(dict pprofile.ProfilesDictionary, stack int32) (frames []pythonFrame) {
	text := func(i int32) string { return dict.StringTable().At(int(i)) }
	for _, i := range dict.StackTable().At(int(stack)).LocationIndices().All() {
		loc := dict.LocationTable().At(int(i))
		var f pythonFrame
		for _, a := range loc.AttributeIndices().All() {
			if kv := dict.AttributeTable().At(int(a)); text(kv.KeyStrindex()) == "profile.frame.type" {
				f.kind = kv.Value().Str()
			}
		}
		for _, line := range loc.Lines().All() {
			fn := dict.FunctionTable().At(int(line.FunctionIndex()))
			f.name, f.file, f.line, f.start = text(fn.NameStrindex()), text(fn.FilenameStrindex()), line.Line(), fn.StartLine()
		}
		frames = append(frames, f)
	}
	return frames
}

// take waits for so many samples of a process and returns their stacks.
func (s *pythonSink) take(pid int64, samples int) []*pythonStack {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		s.mu.Lock()
		n := 0
		for _, stack := range s.stacks[pid] {
			n += stack.samples
		}
		if n >= samples {
			defer s.mu.Unlock()
			return slices.Collect(maps.Values(s.stacks[pid]))
		}
		s.mu.Unlock()
		if time.Now().After(deadline) {
			require.FailNow(s.t, "too few samples", "%d of process %d", n, pid)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// pythons are the commands that run the CPythons of this machine, and those in PYTHONS, with
// commas between.
func pythons() (commands []string) {
	for _, pattern := range []string{"/usr/bin/python3.1[1-4]", os.Getenv("HOME") + "/.pyenv/versions/3.1[1-4].*/bin/python3"} {
		found, _ := filepath.Glob(pattern) // no bad pattern
		commands = append(commands, found...)
	}
	return slices.DeleteFunc(append(commands, strings.Split(os.Getenv("PYTHONS"), ",")...), func(c string) bool { return c == "" })
}

// startPython runs chains.py, and reads what its code objects are.
func startPython(t *testing.T, command string, args ...string) (w *testutil.Writer, facts map[pythonFrame]bool) {
	t.Helper()
	root, err := filepath.Abs("../../testdata/runtimes/chains.py")
	require.NoError(t, err)
	words := strings.Fields(command)
	path := filepath.Join(t.TempDir(), "facts")
	w = testutil.StartPath(t, words[0], slices.Concat(words[1:], []string{root, path}, args)...)
	lowerPriority(t, w.PID)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	facts = map[pythonFrame]bool{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		require.Len(t, fields, 4)
		n, err := strconv.ParseInt(fields[2], 10, 64)
		require.NoError(t, err)
		start, err := strconv.ParseInt(fields[3], 10, 64)
		require.NoError(t, err)
		facts[pythonFrame{name: fields[0], file: fields[1], kind: frameCPython, line: n, start: start}] = true
	}
	return w, facts
}

// pythonOnly returns the Python frames of a stack, outermost first.
func pythonOnly(frames []pythonFrame) (only []pythonFrame) {
	for _, f := range slices.Backward(frames) {
		if f.kind == frameCPython {
			only = append(only, f)
		}
	}
	return only
}

func chainOf(frames []pythonFrame) string {
	var names []string
	for _, f := range frames {
		names = append(names, f.name)
	}
	return strings.Join(names, ">")
}

// TestRuntimesPython: programs of each CPython that is here, with known call chains:
// recursion, generators, callbacks from native code, exceptions, coroutines, methods, threads. Each
// frame has a function, file and line that its program has; the share of samples with a whole
// known chain is bounded. A forked child has its own from the beginning.
func TestRuntimesPython(t *testing.T) {
	commands := ends(pythons())
	require.NotEmpty(t, commands, "no CPython 3.11 to 3.14")
	for _, command := range commands {
		for _, mode := range []string{"threads", "fork", "subinterpreter"} {
			t.Run(mode+" "+command, func(t *testing.T) {
				testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
					measurePython(t, bounds, command, mode, pythonSamples/len(commands)/2)
				})
			})
		}
	}
}

func startPythonReceiver(t *testing.T, out *pythonSink) *running {
	return startReceiver(t, out, changeForPython, manySets)
}

func changeForPython(c *customlabelsreceiver.Config) {
	c.SamplesPerSecond = pythonRate
	c.ReportInterval = 500 * time.Millisecond
}

func measurePython(t *testing.T, bounds *testutil.Bounds, command, mode string, samples int) {
	w, facts := startPython(t, command, mode)
	pids := []int64{int64(w.PID)}
	if mode == "fork" {
		var child int
		require.Eventually(t, func() bool { // it says that it is ready before it forks
			children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", w.PID, w.PID))
			require.NoError(t, err)
			child, err = strconv.Atoi(strings.TrimSpace(string(children)))
			return err == nil
		}, time.Minute, time.Millisecond, "no child")
		lowerPriority(t, child)
		pids = append(pids, int64(child))
	}
	out := &pythonSink{t: t, stacks: map[int64]map[string]*pythonStack{}, since: map[int64]uint64{}}
	for _, pid := range pids {
		out.stacks[pid] = map[string]*pythonStack{}
	}
	r := startPythonReceiver(t, out)
	all, whole, wrong, gone, between := 0, 0, 0, 0, 0
	odd := map[string]int{}
	for _, pid := range pids {
		for _, stack := range out.take(pid, samples) {
			all += stack.samples
			only := pythonOnly(stack.frames)
			for _, f := range only {
				if f.name == goneFunction {
					gone += stack.samples
				} else if !facts[f] {
					wrong += stack.samples
					t.Logf("wrong: %+v in %s", f, chainOf(only))
				}
			}
			if chain := chainOf(only); wholeChain(chain) {
				whole += stack.samples
			} else {
				odd[chain] += stack.samples
			}
			if inNative(stack.frames) {
				between += stack.samples
			}
		}
	}
	n := 0
	for chain, samples := range odd {
		if n++; n <= 20 {
			t.Logf("not whole: %d of %q", samples, chain)
		}
	}
	results := r.metric("runtime_results", "result")
	t.Logf("%s: %d samples, %.4f %% with the whole chain, %d frames gone, %d wrong; %d between native frames; %v",
		command, all, 100*float64(whole)/float64(all), gone, wrong, between, results)
	require.Zero(t, wrong, "names that no function has")
	if mode != "fork" { // there, few samples are of callbacks
		assert.Positive(bounds, between, "native frames between Python frames")
	}
	assert.GreaterOrEqual(bounds, float64(whole)/float64(all), pythonMinWhole)
}

// inNative reports whether a callback, or what a subinterpreter runs, has native frames between it and its caller.
func inNative(frames []pythonFrame) bool {
	for i, f := range frames {
		if f.name != "key" && f.name != "Shape.__lt__" && f.name != "<module>" || i+2 >= len(frames) {
			continue
		}
		isPython := func(f pythonFrame) bool { return f.kind == frameCPython }
		return !slices.ContainsFunc(frames[i+1:i+3], isPython) && slices.ContainsFunc(frames[i+3:], isPython)
	}
	return false
}
