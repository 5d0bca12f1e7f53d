//go:build linux && (amd64 || arm64)

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A stackSpec says what is known of a program before it runs.
type stackSpec struct {
	name    string
	command []string // takes the seconds that it shall run as one argument more
	rules   stackRules
	pattern pattern // of all stacks, where the program has no labels
	untold  bool    // samples without labels count, too
	limit   string  // why the program is not held to the goal; empty: it is

	// compiling is how long a program first takes to compile itself, and compiled is
	// called then.
	compiling time.Duration
	compiled  func(t *testing.T, pid int)
}

var (
	// nativeRoots are the functions that stacks of native programs begin with: of the main
	// thread, and of others as the C libraries call them.
	nativeRoots = []string{"_start", "__start", "clone", "__clone", "clone3", "__clone3", "thread_start", "start"}
	goRoots     = append([]string{"goexit", "mstart", "rt0_go"}, nativeRoots...)
)

const (
	limitJIT = "generated code has no unwind tables: at the first and last instructions of a function the caller is not seen"
)

// stackPrograms lists the built ones that tell their stacks.
func stackPrograms(t *testing.T, dir string) (specs []stackSpec) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		kind, _, _ := strings.Cut(e.Name(), "-")
		s := stackSpec{name: e.Name(), command: []string{path}, rules: stackRules{entries: nativeRoots}}
		switch {
		case e.IsDir() || e.Name() == "c-untold":
			continue
		case e.Name() == "c-stripped":
			s.rules.nameless, s.rules.file = "w_J", path // the part of it that is hardly ever run
			s.untold = true
		case strings.HasPrefix(e.Name(), "c-musl"):
			s.rules.muslRoots(t, path)
			s.untold = true
		case kind == "c" || kind == "cxx" || kind == "rust":
			s.untold = true
		case kind == "golang":
			s.rules.entries, s.rules.systemEntries = goRoots, []string{"mcall", "sigtramp"}
			s.rules.cutEntries = []string{"morestack"}
		case e.Name() == "Java.class":
			s = javaProgram(dir)
		default:
			continue
		}
		specs = append(specs, s)
	}
	if node, err := exec.LookPath("node"); err == nil {
		specs = append(specs, nodeProgram(node, filepath.Join(t.TempDir(), "v8.log")))
	}
	require.NotEmpty(t, specs)
	slices.SortStableFunc(specs, func(a, b stackSpec) int { return strings.Compare(a.name, b.name) })
	return specs
}

// cycles is a pattern of functions that call each other, where n times around is deepest.
func cycles(begin, cycle string, n int, end string) pattern {
	p, err := parsePattern(begin + ";" + strings.Repeat(cycle+";", n) + end)
	if err != nil {
		panic(err)
	}
	return p
}

func nodeProgram(node, log string) stackSpec {
	return stackSpec{
		name: "node",
		// Inlined functions have no frames, and V8 tells no names for them.
		command:   []string{node, "--perf-basic-prof", "--no-turbo-inlining", "--logfile=" + log, "../../testdata/unwind/node.js"},
		rules:     stackRules{entries: nativeRoots, noFile: true, moreRootFrames: 64},
		pattern:   cycles("w_turns", "+w_A;+w_B;?4;+w_C", 30, "+w_A;+w_spin;?12"),
		limit:     limitJIT,
		compiling: 2 * time.Second,
	}
}

func javaProgram(dir string) stackSpec {
	return stackSpec{
		name: "java",
		command: []string{
			"java", "-XX:+PreserveFramePointer", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Java*::w_*", "-cp", dir, "Java",
		},
		rules:     stackRules{entries: nativeRoots, noFile: true, moreRootFrames: 64},
		pattern:   cycles("w_turn", "+w_A;+w_B;+w_step", 30, "+w_A;+w_spin;?12"),
		limit:     limitJIT,
		compiling: 3 * time.Second,
		compiled: func(t *testing.T, pid int) {
			var out []byte
			var err error
			for range 5 { // it gives a busy machine's JVM ten seconds to answer
				if out, err = exec.Command("jcmd", strconv.Itoa(pid), "Compiler.perfmap").CombinedOutput(); err == nil {
					return
				}
			}
			require.NoError(t, err, "%s", out)
		},
	}
}
