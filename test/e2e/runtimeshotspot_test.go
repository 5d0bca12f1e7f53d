//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

var (
	hotSpotSamples = size(100_000, 5_000, 1_500) // of all versions and modes
	hotSpotRate    = size(1999, 999, 499)
	// hotSpotEarly are samples that are passed over first, until the compilers have come to the chains: two
	// seconds of a CPU, which on a busy machine are many of the clock. On an emulated machine it takes longer.
	hotSpotEarly = size(2*1999, 2*999, 4_000)
	// hotSpotLeastMaths are samples of stubs with a frame; while few are taken there may be none.
	hotSpotLeastMaths = size(1, 1, 0)
	// hotSpotMaxUnnamed is the greatest share of samples in whose innermost frame an inlined function is
	// not named. An emulator interrupts where it has translated from, the head of a loop for instance.
	hotSpotMaxUnnamed = size(0.002, 0.002, 0.05)
)

const (
	// hotSpotMinWhole is the least share of samples with the whole chain, and of lines that are known.
	hotSpotMinWhole = 0.99
	// The same of code that C1 has compiled, whose lines and inlined methods HotSpot knows at calls and
	// safepoints only, without DebugNonSafepoints: it hangs on the CPU how often it is interrupted where
	// it knows none. On AMD EPYC 97.9 to 98.6 % were whole, on Intel Xeon 99.1 % and more.
	hotSpotMinWholeC1 = 0.97
	// hotSpotMaxDisagree is that of samples whose stack lacks the function of their label: while an
	// exception, or a method that is no longer as it was compiled, is about to leave a frame.
	hotSpotMaxDisagree = 1e-4
	// hotSpotFalseAlarms is the chance that a run fails in which either share is no greater.
	hotSpotFalseAlarms = 1e-6
	frameJVM           = "jvm"
)

// hotSpotChains are the stacks that testdata/runtimes/Chains.java may have, outermost first, its own functions only.
var hotSpotChains = regexp.MustCompile(`^Chains\$Worker\.run(>Chains\.turn(>(` + strings.Join([]string{
	`Chains\.recursion((>Chains\.descend){0,201}|(>Chains\.descend){201}>Chains\.burn)`,
	`Chains\.inlining(>Chains\.outer(>Chains\.middle(>Chains\.inner)?)?)?`,
	`Chains\.lambdas(>Chains\.lambda\$lambdas\$0(>Chains\.burn)?)?`,
	`Chains\.sorting(>Chains\.compare(>Chains\.burn)?)?`,
	`Chains\.exceptions((>Chains\.failing){0,7}|(>Chains\.failing){7}>Chains\.burn|>Chains\.burn)`,
	`Chains\.interfaces(>Chains\$(Square|Circle|Line)\.area(>Chains\.burn)?)?`,
	`Chains\.(copying|garbage|natives)`,
	`Chains\.maths(>Chains\.turned(>Chains\.squared)?)?`,
	`Chains\.callback(>Chains\.classes|>Chains\$Called\.<clinit>(>Chains\.<clinit>(>Chains\$\w+\.<init>)?|>Chains\.burn)?)?`,
}, "|") + `))?)?$`)

// hotSpotVirtual are those of its virtual threads, whose outer frames may be in the heap.
var hotSpotVirtual = regexp.MustCompile(
	`^(<frames in the heap>|Chains\.lambda\$main\$\d+)(>Chains\.virtual)?((>Chains\.descend){0,51}|(>Chains\.yielding){0,61})(>Chains\.burn)?$`)

// inHeap stands for those.
const inHeap = "<frames in the heap>"

// hotSpotNamed are chains that have a function which publishes its name.
var hotSpotNamed = regexp.MustCompile(`>Chains\.turn>Chains\.`)

// runsJava tells stacks of threads that run the program.
func runsJava(of *chainStack) bool {
	return slices.ContainsFunc(of.frames, func(f chainFrame) bool { return strings.HasPrefix(f.name, "Chains") })
}

// jdk is the directory with the programs of a JDK that has a compiler.
func jdk(t *testing.T) string {
	path, err := exec.LookPath("javac")
	require.NoError(t, err)
	path, err = filepath.EvalSymlinks(path)
	require.NoError(t, err)
	return filepath.Dir(path)
}

// javas are the commands that run the JVMs of this machine, and those in JAVAS, with commas between.
func javas() (commands []string) {
	found, _ := filepath.Glob("/usr/lib/jvm/*/bin/java") // no bad pattern
	var real []string
	for _, path := range found {
		if path, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(real, path) {
			real = append(real, path)
		}
	}
	return append(real, commandsIn("JAVAS")...)
}

// hasVirtualThreads reports whether a JVM is of Java 21 or newer.
func hasVirtualThreads(command string) bool {
	words := strings.Fields(command)
	out, _ := exec.Command(words[0], append(words[1:], "-version")...).CombinedOutput()
	m := regexp.MustCompile(`version "(\d+)`).FindSubmatch(out)
	if m == nil {
		return false
	}
	n, err := strconv.Atoi(string(m[1]))
	return err == nil && n >= 21
}

// Where the program's classes are, built, with what javap says of their lines: machines without a JDK.
const (
	chainsEnv   = "CUSTOM_LABELS_JAVA_CHAINS"
	chainsLines = "lines.txt"
)

// buildChains compiles the program, and returns where it is, and which lines its functions have.
func buildChains(t *testing.T) (dir string, facts map[chainFrame]bool) {
	t.Helper()
	if dir = os.Getenv(chainsEnv); dir != "" {
		lines, err := os.ReadFile(filepath.Join(dir, chainsLines))
		require.NoError(t, err)
		return dir, chainFacts(t, lines)
	}
	dir = t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	labels := filepath.Join(root, "examples", "publish", "java", "labels")
	out, err := exec.Command(filepath.Join(jdk(t), "javac"), "--release", "17", "-nowarn", "-d", dir,
		filepath.Join(root, "testdata", "runtimes", "Chains.java"),
		filepath.Join(labels, "Labels.java"), filepath.Join(labels, "JniNative.java")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	classes, err := filepath.Glob(filepath.Join(dir, "Chains*.class"))
	require.NoError(t, err)
	out, err = exec.Command(filepath.Join(jdk(t), "javap"), append([]string{"-l", "-p"}, classes...)...).Output()
	require.NoError(t, err)
	return dir, chainFacts(t, out)
}

// chainFacts returns the lines of functions by what javap says.
func chainFacts(t *testing.T, out []byte) (facts map[chainFrame]bool) {
	t.Helper()
	facts = map[chainFrame]bool{}
	class, method := "", ""
	named := regexp.MustCompile(`([\w$]+)\(.*\).*;$`)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		words := strings.Fields(line)
		switch {
		case strings.HasSuffix(line, "{") && !strings.HasPrefix(line, "static {"):
			i := slices.IndexFunc(words, func(w string) bool { return w == "class" || w == "interface" })
			class = words[i+1]
		case strings.HasPrefix(line, "static {"):
			method = class + ".<clinit>"
		case named.MatchString(line):
			if method = class + "." + named.FindStringSubmatch(line)[1]; strings.HasSuffix(method, "."+class) {
				method = class + ".<init>"
			}
		case strings.HasPrefix(line, "line "):
			n, err := strconv.ParseInt(strings.TrimSuffix(words[1], ":"), 10, 64)
			require.NoError(t, err)
			facts[chainFrame{name: method, file: "Chains.java", kind: frameJVM, line: n}] = true
		}
	}
	return facts
}

// hotSpotModes are options of the JVMs.
var hotSpotModes = map[string][]string{
	"default":     {"-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chains::turned", "-XX:CompileCommand=dontinline,Chains::squared"},
	"interpreted": {"-Xint"},
	"c1":          {"-XX:TieredStopAtLevel=1"},
	"c1-lines":    {"-XX:TieredStopAtLevel=1", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"},
	"zgc":         {"-XX:+UseZGC"},
	"g1":          {"-XX:+UseG1GC", "-Xmx64m"},
	"serial":      {"-XX:+UseSerialGC"},
	"virtual":     nil,
}

// TestRuntimesHotSpot: a program with known call chains on each JVM 17, 21 and 25 that is here:
// recursion, lambdas, inlined methods, exceptions, callbacks from native code, stubs, garbage,
// interpreted and compiled. Each frame of its own has a function, file and line that the
// program has; the share of samples with a whole known chain is bounded; labels name the
// function that runs.
func TestRuntimesHotSpot(t *testing.T) {
	commands := ends(javas())
	require.NotEmpty(t, commands, "no JVM 17, 21 or 25")
	dir, facts := buildChains(t)
	modes := size([]string{"default", "interpreted", "c1", "c1-lines", "g1", "serial", "zgc", "virtual"}, []string{"default", "interpreted"}, []string{"default"})
	for _, command := range commands {
		for _, mode := range modes {
			if mode == "virtual" && !hasVirtualThreads(command) {
				continue
			}
			t.Run(mode+" "+strings.ReplaceAll(strings.TrimSuffix(command, "/bin/java"), "/", "-"), func(t *testing.T) {
				testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
					measureHotSpot(t, bounds, command, dir, mode, facts, hotSpotSamples/len(commands)/len(modes))
				})
			})
		}
	}
}

func measureHotSpot(t *testing.T, bounds *testutil.Bounds, command, dir, mode string, facts map[chainFrame]bool, samples int) {
	words := strings.Fields(command)
	args, known := []string{"-cp", dir, "Chains", "4"}, hotSpotChains
	if mode == "virtual" {
		args, known = append(args, mode), hotSpotVirtual
	}
	out := &chainSink{
		t:      t,
		warm:   func(of *chainStack) bool { return !of.cut && runsJava(of) }, // there are rows of the files that all have in their stacks
		early:  hotSpotEarly,
		counts: func(of *chainStack) bool { return of.function != "" || runsJava(of) },
	}
	r := startReceiver(t, out, atRate(hotSpotRate), manySets)
	// It is seen from its first instant on, when it has no code heaps yet.
	w := testutil.StartPath(t, words[0], slices.Concat(words[1:], hotSpotModes[mode], args)...)
	lowerPriority(t, w.PID)
	out.follow(int64(w.PID))
	var all, whole, wrong, stale, maths, gone, cut, labelled, disagree, lines, unknown, unnamed, heap int
	odd := map[string]int{}
	for _, stack := range out.take(int64(w.PID), samples) {
		all += stack.samples
		var chain []string
		for _, f := range slices.Backward(stack.frames) {
			switch {
			case f.name == goneFunction:
				gone += stack.samples
			case f.name == inHeap:
				chain = append(chain, f.name)
				heap += stack.samples
			case strings.HasPrefix(f.name, "Chains"):
				if strings.HasPrefix(f.name, "Chains$$Lambda") {
					continue // it has no lines
				}
				chain = append(chain, f.name)
				lines += stack.samples
				if f.line == 0 {
					unknown += stack.samples
					odd["no line: "+f.name+fmt.Sprint(" leaf ", stack.frames[0])] += stack.samples
					f.line = someLine(facts, f.name)
				}
				if !facts[f] {
					wrong += stack.samples
					t.Logf("wrong: %+v in %s", f, strings.Join(chain, ">"))
				}
			}
		}
		path := strings.Join(chain, ">")
		if strings.HasPrefix(stack.frames[0].name, "StubRoutines") && strings.Contains(path, ">Chains.maths") {
			maths += stack.samples
			if !strings.HasSuffix(path, ">Chains.maths") {
				stale += stack.samples
				t.Logf("a stub is called by what it is not: %s", path)
			}
		}
		if stack.cut {
			cut += stack.samples
		}
		if known.MatchString(path) && !stack.cut {
			whole += stack.samples
		} else {
			odd[fmt.Sprint(stack.cut, " ", path, " at ", stack.frames[:min(3, len(stack.frames))])] += stack.samples
		}
		if stack.function == "" || stack.cut {
			continue
		}
		labelled += stack.samples
		if !slices.Contains(chain, "Chains."+stack.function) {
			// Of the innermost compiled frame, HotSpot does not keep what was inlined everywhere.
			if hotSpotNamed.MatchString(path) || innermostUser(stack.frames).kind != frameJVM {
				disagree += stack.samples
			} else {
				unnamed += stack.samples
			}
			t.Logf("label %s on %s: %v", stack.function, path, stack.frames)
		}
	}
	logOdd(t, "not whole", odd)
	t.Logf("%s %s: %d samples, %.4f %% with the whole chain, %d cut, %d frames gone, of %d lines %d unknown, %d wrong; %d in stubs of maths; %d with label, %d disagree, %d unnamed; %v",
		mode, command, all, 100*float64(whole)/float64(all), cut, gone, lines, unknown, wrong, maths, labelled, disagree, unnamed, r.metric("runtime_results", "result"))
	require.Zero(t, wrong, "names and lines that no function has")
	if mode == "default" {
		require.GreaterOrEqual(bounds, maths, hotSpotLeastMaths, "samples of stubs with a frame")
	}
	require.Zero(t, stale, "%d samples of stubs have callers that have returned", maths)
	chance := testutil.PoissonTail(disagree, hotSpotMaxDisagree*float64(labelled))
	assert.Greater(t, chance, hotSpotFalseAlarms, "%d of %d labels of functions that are not on the stack", disagree, labelled)
	if mode == "virtual" {
		require.Positive(t, heap, "stacks that go on in the heap")
	} else {
		require.Zero(t, heap, "stacks of other threads that go on in the heap")
		require.Positive(t, labelled, "samples with a label")
		chance := testutil.PoissonTail(unnamed, hotSpotMaxUnnamed*float64(labelled))
		assert.Greater(t, chance, hotSpotFalseAlarms, "%d of %d functions that were inlined are not named", unnamed, labelled)
	}
	least := hotSpotMinWhole
	if mode == "c1" {
		least = hotSpotMinWholeC1
	}
	assertShare(bounds, lines-unknown, lines, least, "known lines")
	assertShare(bounds, whole, all, least, "samples with the whole chain")
}

// innermostUser returns the innermost frame that is not the kernel's.
func innermostUser(frames []chainFrame) chainFrame {
	i := slices.IndexFunc(frames, func(f chainFrame) bool { return f.kind != "kernel" })
	if i < 0 {
		return chainFrame{}
	}
	return frames[i]
}

// someLine returns a line of a function, 0 if there is no such function.
func someLine(facts map[chainFrame]bool, name string) int64 {
	for f := range facts {
		if f.name == name {
			return f.line
		}
	}
	return 0
}
