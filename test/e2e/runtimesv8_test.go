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
	v8Samples = size(100_000, 4_000, 500) // of all versions
	v8Rate    = size(1999, 1999, 499)
)

// v8MinWhole is the least share of samples that have the whole known chain, v8MinLines that of
// frames that call another which have the line of the call.
const (
	v8MinWhole = 0.99
	v8MinLines = 0.99
)

const (
	frameV8  = "v8js"
	cutStack = "<cut>" // the outermost frame of a stack that is
)

// v8Warm is how long a process is left out after the first whole stack of its main thread: what
// was sampled before the rows of its files were there is not looked at. The stack of another
// thread is known to be whole by the C library's rows alone.
const v8Warm = time.Second

// v8Chains are the stacks that testdata/runtimes/chains.js may have, outermost first, its own
// functions only.
var v8Chains = func() *regexp.Regexp {
	const (
		burn    = `(>burn)?`
		numbers = `(>numbers` + burn + `)?`
	)
	scenario := "(" + strings.Join([]string{
		`recursion((>descend){0,200}|(>descend){201}` + burn + `)`,
		`generator` + numbers,
		`spread` + numbers,
		`callback(>order` + burn + `)?`,
		`nested(>visit(><anonymous>` + burn + `)?)?`,
		`natives(>(replaced|revived)` + burn + `)?`,
		`exception((>failing){0,6}|(>failing){1,5}` + burn + `|` + burn + `)`,
		`methods(>(Shape|get area|valueOf)` + burn + `|>make(>closure` + burn + `)?)?`,
		`inlined(>middle(>innermost)?)?`,
		`garbage`,
		`größe` + burn,
	}, "|") + ")"
	return regexp.MustCompile(`^(<anonymous>>worker(>` + scenario + `)?|(<anonymous>>)?(coroutine>)?(outer>)?(outer|inner(>burn)?)|(<anonymous>>)?coroutine(><anonymous>)?)$`)
}()

// v8Main are those of the main thread.
var v8Main = regexp.MustCompile(`^(<anonymous>>)?coroutine`)

// v8Sink keeps what was said of the stacks of a process.
type v8Sink struct {
	t      testing.TB
	script string

	mu     sync.Mutex
	pid    int64
	stacks map[string]*pythonStack // by all that is in the stack
	since  uint64
}

func (s *v8Sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *v8Sink) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
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
		if pid, _ := rp.Resource().Attributes().Get("process.pid"); pid.Int() != s.pid {
			continue
		}
		for _, sample := range rp.ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
			frames := lineFrames(dict, sample.StackIndex())
			n, cut := 0, isCut(dict, sample)
			for _, at := range sample.TimestampsUnixNano().All() {
				switch {
				case s.since == 0 && !cut && v8Main.MatchString(s.chain(frames)):
					s.since = at + uint64(v8Warm)
				case s.since != 0 && at >= s.since:
					n++
				}
			}
			if n == 0 {
				continue
			}
			if cut {
				frames = append(frames, pythonFrame{name: cutStack})
			}
			key := fmt.Sprint(frames)
			if s.stacks[key] == nil {
				s.stacks[key] = &pythonStack{frames: frames}
			}
			s.stacks[key].samples += n
		}
	}
	return nil
}

// isCut reports whether a sample says that its stack is.
func isCut(dict pprofile.ProfilesDictionary, sample pprofile.Sample) bool {
	for _, i := range sample.AttributeIndices().All() {
		if dict.StringTable().At(int(dict.AttributeTable().At(int(i)).KeyStrindex())) == "custom_labels.stack_truncated" {
			return true
		}
	}
	return false
}

// lineFrames returns the frames of a stack, leaf first: each line of a location is one.
func lineFrames(dict pprofile.ProfilesDictionary, stack int32) (frames []pythonFrame) {
	text := func(i int32) string { return dict.StringTable().At(int(i)) }
	for _, i := range dict.StackTable().At(int(stack)).LocationIndices().All() {
		loc := dict.LocationTable().At(int(i))
		var f pythonFrame
		for _, a := range loc.AttributeIndices().All() {
			if kv := dict.AttributeTable().At(int(a)); text(kv.KeyStrindex()) == "profile.frame.type" {
				f.kind = kv.Value().Str()
			}
		}
		if loc.Lines().Len() == 0 {
			frames = append(frames, f)
		}
		for _, line := range loc.Lines().All() {
			fn := dict.FunctionTable().At(int(line.FunctionIndex()))
			f.name, f.file, f.line, f.start = text(fn.NameStrindex()), text(fn.FilenameStrindex()), line.Line(), fn.StartLine()
			frames = append(frames, f)
		}
	}
	return frames
}

// own returns the frames of the script, outermost first.
func (s *v8Sink) own(frames []pythonFrame) (own []pythonFrame) {
	for _, f := range slices.Backward(frames) {
		if f.kind == frameV8 && f.file == s.script {
			own = append(own, f)
		}
	}
	return own
}

func (s *v8Sink) chain(frames []pythonFrame) string { return chainOf(s.own(frames)) }

// take waits for so many samples and returns their stacks.
func (s *v8Sink) take(samples int) []*pythonStack {
	deadline := time.Now().Add(2*time.Minute + time.Duration(samples)*10*time.Millisecond)
	for {
		s.mu.Lock()
		n := 0
		for _, stack := range s.stacks {
			n += stack.samples
		}
		if n >= samples {
			defer s.mu.Unlock()
			return slices.Collect(maps.Values(s.stacks))
		}
		s.mu.Unlock()
		if time.Now().After(deadline) {
			require.FailNow(s.t, "too few samples", "%d", n)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// v8Nodes are the Node.js that scripts/node-writers.sh has installed, and those in NODES, with
// commas between.
func v8Nodes() (nodes []string) {
	found, _ := filepath.Glob(filepath.Join(nodeBuild, "node_modules", "node2[0-9]", "bin", "node")) // no bad pattern
	for _, node := range append(found, strings.Split(os.Getenv("NODES"), ",")...) {
		if node != "" {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// v8Source is what the lines of the script say.
type v8Source struct {
	starts map[string][]int64 // first lines of functions by name
	calls  [][]string         // by line less 1: the functions that it calls
}

// v8Definition matches a line that begins a function.
var v8Definition = regexp.MustCompile(`(?:function\*? |^  (?:static )?|const )([\p{L}_]+)(?: = \(\) =>|\(.*\{)`)

func readV8Source(t *testing.T, path string) *v8Source {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	s := &v8Source{starts: map[string][]int64{}}
	n := int64(0)
	for line := range strings.Lines(strings.ReplaceAll(string(text), "get area", "get_area")) {
		n++
		code, calls, _ := strings.Cut(strings.TrimSpace(line), "// > ")
		names := strings.Fields(calls)
		for i := range names {
			names[i] = strings.ReplaceAll(names[i], "_", " ") // "get area" is one
		}
		s.calls = append(s.calls, names)
		if m := v8Definition.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil && !slices.Contains([]string{"if", "for", "catch", "try"}, m[1]) {
			name := strings.ReplaceAll(m[1], "_", " ")
			if name == "constructor" {
				name = "Shape"
			}
			s.starts[name] = append(s.starts[name], n)
		}
		if strings.Contains(code, "=> ") {
			s.starts["<anonymous>"] = append(s.starts["<anonymous>"], n)
		}
	}
	s.starts["<anonymous>"] = append(s.starts["<anonymous>"], 1) // the module
	return s
}

// TestRuntimesV8: a program of each Node.js that is here, with known call chains in the main
// thread and in a worker: recursion, generators, callbacks from builtins and native code,
// exceptions, asynchronous functions, methods, inlining, garbage. Each frame has a function and
// where it begins as the script has it; the shares of samples with a whole known chain, and of
// frames with the line of their call, are bounded.
func TestRuntimesV8(t *testing.T) {
	nodes := ends(v8Nodes())
	require.NotEmpty(t, nodes, "no Node.js: run scripts/node-writers.sh")
	script, err := filepath.Abs("../../testdata/runtimes/chains.js")
	require.NoError(t, err)
	for _, node := range nodes {
		t.Run(node, func(t *testing.T) {
			testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
				measureV8(t, bounds, node, script, v8Samples/len(nodes))
			})
		})
	}
}

func measureV8(t *testing.T, bounds *testutil.Bounds, node, script string, samples int) {
	source := readV8Source(t, script)
	w := testutil.StartPath(t, node, script)
	lowerPriority(t, w.PID)
	out := &v8Sink{t: t, script: script, pid: int64(w.PID), stacks: map[string]*pythonStack{}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = v8Rate
		c.ReportInterval = 500 * time.Millisecond
	}, manySets)
	n := v8Counts{odd: map[string]int{}, lines: map[string]int{}, cuts: map[string]int{}}
	for _, stack := range out.take(samples) {
		n.add(t, stack, out, source)
	}
	n.log(t, node)
	t.Logf("%v; %v", r.metric("runtime_results", "result"), r.metric("user_stacks", "outcome"))
	require.Zero(t, n.wrong, "names that no function has")
	assert.GreaterOrEqual(bounds, float64(n.whole)/float64(n.all-n.idle), v8MinWhole)
	assert.GreaterOrEqual(bounds, float64(n.calls-n.otherLine)/float64(n.calls), v8MinLines)
}

// v8Counts is what the samples of a process came to.
type v8Counts struct {
	all, whole, wrong, gone, idle, cut int
	calls, otherLine                   int
	odd, lines, cuts                   map[string]int
}

func (n *v8Counts) add(t *testing.T, stack *pythonStack, out *v8Sink, source *v8Source) {
	n.all += stack.samples
	for _, f := range stack.frames {
		if f.name == goneFunction {
			n.gone += stack.samples
		}
		if f.name == cutStack {
			n.cut += stack.samples
			var names []string
			for _, f := range stack.frames[max(0, len(stack.frames)-8):] {
				names = append(names, f.kind+":"+f.name)
			}
			n.cuts[strings.Join(names, " < ")] += stack.samples
		}
	}
	own := out.own(stack.frames)
	if len(own) == 0 && !slices.ContainsFunc(stack.frames, func(f pythonFrame) bool { return f.kind == frameV8 }) {
		n.idle += stack.samples // another thread, the event loop
		return
	}
	for i, f := range own {
		if !slices.Contains(source.starts[f.name], f.start) {
			n.wrong += stack.samples
			t.Logf("wrong: %+v in %s", f, chainOf(own))
			continue
		}
		if i+1 == len(own) {
			continue
		}
		n.calls += stack.samples
		if f.line < 1 || int(f.line) > len(source.calls) || !slices.Contains(source.calls[f.line-1], own[i+1].name) {
			n.otherLine += stack.samples
			n.lines[fmt.Sprintf("%s:%d calls %s", f.name, f.line, own[i+1].name)] += stack.samples
		}
	}
	cut := stack.frames[len(stack.frames)-1].name == cutStack
	if chain := chainOf(own); !cut && (len(own) == 0 || v8Chains.MatchString(chain)) {
		n.whole += stack.samples
	} else if !cut {
		n.odd[chain] += stack.samples
	}
}

func (n *v8Counts) log(t *testing.T, node string) {
	for what, of := range map[string]map[string]int{"not whole": n.odd, "line": n.lines, "cut": n.cuts} {
		keys := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return of[b] - of[a] })
		for i, key := range keys {
			if i == 20 {
				break
			}
			t.Logf("%s: %d of %q", what, of[key], key)
		}
	}
	t.Logf("%s: %d samples, %d without JavaScript, %.4f %% with the whole chain, %d cut, %d frames gone, %d wrong; %d of %d calls with another line",
		node, n.all, n.idle, 100*float64(n.whole)/float64(n.all-n.idle), n.cut, n.gone, n.wrong, n.otherLine, n.calls)
}
