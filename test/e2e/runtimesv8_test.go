//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

var v8Samples = size(100_000, 4_000, 500) // of all versions

var v8CopiesSamples = size(20_000, 1_200, 400) // of all versions

// v8MinWhole is the least share of samples that have the whole known chain, v8MinLines that of
// frames that call another which have the line of the call.
const (
	v8MinWhole = 0.99
	v8MinLines = 0.99
)

const frameV8 = "v8js"

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
		`tight(>half(>step)?)?`,
		`garbage`,
		`größe` + burn,
		`mutual((>p[io]ng){0,40}|(>p[io]ng){41}` + burn + `)`,
		`doom(>doomed(>between(>waits` + burn + `)?|>innermost)?)?`,
	}, "|") + ")"
	return regexp.MustCompile(`^(<anonymous>>worker(>` + scenario + `)?|(<anonymous>>)?(coroutine>)?(outer>)?(outer|inner(>burn)?)|(<anonymous>>)?coroutine(><anonymous>)?)$`)
}()

// v8Main are those of the main thread. The stack of another is known to be whole by the C
// library's rows alone.
var v8Main = regexp.MustCompile(`^(<anonymous>>)?coroutine`)

// v8Nodes are the Node.js that scripts/node-writers.sh has installed, and those in NODES, with
// commas between.
func v8Nodes() []string {
	found, _ := filepath.Glob(filepath.Join(nodeBuild, "node_modules", "node2[0-9]", "bin", "node")) // no bad pattern
	return append(found, commandsIn("NODES")...)
}

// v8Source is a script, and what its lines say.
type v8Source struct {
	path   string
	starts map[string][]int64 // first lines of functions by name
	calls  [][]string         // by line less 1: the functions that it calls
}

// v8Definition matches a line that begins a function.
var v8Definition = regexp.MustCompile(`(?:function\*? |^  (?:static )?|const )([\p{L}_]+)(?: = \(\) =>|\(.*\{)`)

func readV8Source(t *testing.T, path string) *v8Source {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	s := &v8Source{path: path, starts: map[string][]int64{}}
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

// own returns the frames of the script, outermost first.
func (s *v8Source) own(frames []chainFrame) []chainFrame {
	return outermostFirst(frames, func(f chainFrame) bool { return f.kind == frameV8 && f.file == s.path })
}

// TestRuntimesV8: a program of each Node.js that is here, with known call chains in the main
// thread and in a worker: recursion, generators, callbacks from builtins and native code,
// exceptions, asynchronous functions, methods, inlining, garbage. Each frame has a function and
// where it begins as the script has it; the shares of samples with a whole known chain, and of
// frames with the line of their call, are bounded.
func TestRuntimesV8(t *testing.T) {
	nodes := ends(v8Nodes())
	require.NotEmpty(t, nodes, "no Node.js: run scripts/node-writers.sh")
	for _, node := range nodes {
		t.Run(node, func(t *testing.T) {
			testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
				measureV8(t, bounds, node, v8Samples/len(nodes))
			})
		})
	}
}

// TestRuntimesV8Copies: so it is where each function has a copy of the interpreter's entry, and none is compiled. From
// Node.js 22 on only functions that are logged have one.
func TestRuntimesV8Copies(t *testing.T) {
	nodes := ends(v8Nodes())
	require.NotEmpty(t, nodes, "no Node.js: run scripts/node-writers.sh")
	for _, node := range nodes {
		t.Run(node, func(t *testing.T) {
			testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
				log := filepath.Join(t.TempDir(), "v8.log") // that --perf-basic-prof makes, too
				measureV8(t, bounds, node, v8CopiesSamples/len(nodes), "--interpreted-frames-native-stack", "--perf-basic-prof",
					"--no-logfile-per-isolate", "--logfile="+log, "--no-opt", "--no-maglev", "--no-sparkplug")
			})
		})
	}
}

func measureV8(t *testing.T, bounds *testutil.Bounds, node string, samples int, flags ...string) {
	n, r := sampleV8(t, node, samples, flags...)
	t.Logf("%v; %v", r.metric("runtime_results", "result"), r.metric("user_stacks", "outcome"))
	require.Zero(t, n.wrong, "names that no function has")
	assertShare(bounds, n.whole, n.all-n.idle, v8MinWhole, "samples with the whole chain")
	assertShare(bounds, n.calls-n.otherLine, n.calls, v8MinLines, "lines")
}

// sampleV8 runs chains.js with flags of Node.js, and judges so many samples of it.
func sampleV8(t *testing.T, node string, samples int, flags ...string) (*v8Counts, *running) {
	t.Helper()
	script, err := filepath.Abs("../../testdata/runtimes/chains.js")
	require.NoError(t, err)
	source := readV8Source(t, script)
	w := testutil.StartPath(t, node, append(flags, script)...)
	t.Cleanup(func() { os.Remove(fmt.Sprintf("/tmp/perf-%d.map", w.PID)) }) // with --perf-basic-prof
	lowerPriority(t, w.PID)
	out := &chainSink{t: t, warm: func(of *chainStack) bool {
		return !of.cut && v8Main.MatchString(chainOf(source.own(of.frames)))
	}}
	out.follow(int64(w.PID))
	r := startReceiver(t, out, atRate(chainRate), manySets)
	n := &v8Counts{odd: map[string]int{}, lines: map[string]int{}, cuts: map[string]int{}}
	for _, stack := range out.take(int64(w.PID), samples) {
		n.add(t, stack, source)
	}
	n.log(t, node)
	return n, r
}

// v8Counts is what the samples of a process came to.
type v8Counts struct {
	all, whole, wrong, gone, idle, cut int
	calls, otherLine                   int
	odd, lines, cuts                   map[string]int
}

func (n *v8Counts) add(t *testing.T, stack *chainStack, source *v8Source) {
	n.all += stack.samples
	for _, f := range stack.frames {
		if f.name == goneFunction {
			n.gone += stack.samples
		}
	}
	if stack.cut {
		n.cut += stack.samples
		var names []string
		for _, f := range stack.frames[max(0, len(stack.frames)-7):] {
			names = append(names, f.kind+":"+f.name)
		}
		n.cuts[strings.Join(names, " < ")] += stack.samples
	}
	own := source.own(stack.frames)
	if len(own) == 0 && !slices.ContainsFunc(stack.frames, func(f chainFrame) bool { return f.kind == frameV8 }) {
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
	if chain := chainOf(own); !stack.cut && (len(own) == 0 || v8Chains.MatchString(chain)) {
		n.whole += stack.samples
	} else if !stack.cut {
		n.odd[chain] += stack.samples
	}
}

func (n *v8Counts) log(t *testing.T, node string) {
	logOdd(t, "not whole", n.odd)
	logOdd(t, "line", n.lines)
	logOdd(t, "cut", n.cuts)
	t.Logf("%s: %d samples, %d without JavaScript, %.4f %% with the whole chain, %d cut, %d frames gone, %d wrong; %d of %d calls with another line",
		node, n.all, n.idle, 100*float64(n.whole)/float64(n.all-n.idle), n.cut, n.gone, n.wrong, n.otherLine, n.calls)
}
