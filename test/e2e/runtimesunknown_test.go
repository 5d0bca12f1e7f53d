//go:build linux && (amd64 || arm64)

package e2e

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// unknownRuntimes are those of testdata/runtimes/unknown.c, with what the log says of each.
var unknownRuntimes = map[string]string{
	"V8":                   "V8 99.1",
	"HOTSPOT":              "HotSpot 26",
	"PYTHON_NEWER":         "CPython 3.15.0",
	"PYTHON_OLDER":         "CPython before 3.11",
	"PYTHON_FREE_THREADED": "free-threaded build",
	"PYTHON_DAMAGED":       "no _Py_DebugOffsets",
}

// unreadableRuntimes are those of them that are of a known version.
var unreadableRuntimes = []string{"PYTHON_DAMAGED"}

// logUnknownRuntime is said once for each file.
const logUnknownRuntime = "The functions of a language runtime are not known: its stacks have native frames only."

// runtimeNamed is how long the functions of a program may take until they are named: the rows of
// all files of a busy machine may come first, slowly.
const runtimeNamed = 5 * time.Minute

// TestRuntimesUnknown: a runtime of a version or build that is not known, or that cannot be read, is
// told once for its file, with the version or what is wrong, and counted; its processes have the stacks that any other program has.
func TestRuntimesUnknown(t *testing.T) {
	programs := map[string]string{} // what the log says of them, by path
	include := []customlabelsreceiver.TargetSelector{}
	for kind, want := range unknownRuntimes {
		program := filepath.Join(t.TempDir(), "unknown")
		text, err := exec.Command("cc", "-O2", "-rdynamic", "-D"+kind, "-o", program, "../../testdata/runtimes/unknown.c").CombinedOutput()
		require.NoError(t, err, "%s", text)
		programs[program] = want
		include = append(include, customlabelsreceiver.TargetSelector{Executable: program})
	}
	out := &chainSink{t: t}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		atRate(chainRate)(c)
		c.Targets.Include = include
	}, manySets)
	var pids []int64
	for program := range programs {
		for range 2 {
			w := testutil.StartPath(t, program)
			lowerPriority(t, w.PID)
			pids = append(pids, int64(w.PID))
		}
	}
	out.follow(pids...)
	for _, pid := range pids {
		for _, stack := range out.take(pid, 50) {
			for _, f := range stack.frames {
				require.NotContains(t, []string{frameV8, frameJVM, frameCPython}, f.kind)
			}
		}
	}
	of := func() (unsupported, unreadable int64) {
		results := r.metric("runtime_results", "result")
		return results["file_unsupported"], results["file_unreadable"]
	}
	require.Eventually(t, func() bool {
		unsupported, unreadable := of()
		return unsupported+unreadable >= int64(len(programs))
	}, time.Minute, 50*time.Millisecond)
	unsupported, unreadable := of()
	require.EqualValues(t, len(unreadableRuntimes), unreadable)
	require.EqualValues(t, len(programs)-len(unreadableRuntimes), unsupported, "once for the file of two processes")
	r.stop()
	lines := r.logs.FilterMessage(logUnknownRuntime).All()
	require.Len(t, lines, len(programs))
	for _, line := range lines {
		file := line.ContextMap()["file"].(string)
		assert.Contains(t, line.ContextMap()["error"], programs[file], file)
		delete(programs, file)
	}
	require.Empty(t, programs)
}

// TestRuntimesOff: of a runtime that is off, no function is named, and stacks are native; the
// others have theirs.
func TestRuntimesOff(t *testing.T) {
	pythons, nodes, javas := pythons(), v8Nodes(), javas()
	require.NotEmpty(t, pythons, "no CPython 3.11 to 3.14")
	require.NotEmpty(t, nodes, "no Node.js: run scripts/node-writers.sh")
	require.NotEmpty(t, javas, "no JVM 17, 21 or 25")
	python, _ := startPython(t, pythons[0], "threads")
	script, err := filepath.Abs("../../testdata/runtimes/chains.js")
	require.NoError(t, err)
	node := testutil.StartPath(t, nodes[0], script)
	classes, _ := buildChains(t)
	java := testutil.StartPath(t, strings.Fields(javas[0])[0], "-cp", classes, "Chains", "1")
	kinds := map[int64]string{int64(python.PID): frameCPython, int64(node.PID): frameV8, int64(java.PID): frameJVM}
	for pid := range kinds {
		lowerPriority(t, int(pid))
	}
	for name, on := range map[string]map[string]bool{
		"HotSpot alone":   {frameJVM: true},
		"all but HotSpot": {frameCPython: true, frameV8: true},
	} {
		t.Run(name, func(t *testing.T) {
			out := &chainSink{t: t}
			r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
				atRate(chainRate)(c)
				c.Runtimes.Python.Enabled = on[frameCPython]
				c.Runtimes.V8.Enabled = on[frameV8]
				c.Runtimes.Hotspot.Enabled = on[frameJVM]
			}, manySets)
			// What is on is first: until it is known what its functions are, nor is it of what is off.
			for pid, kind := range kinds {
				if on[kind] {
					out.follow(pid)
					require.True(t, waitFor(runtimeNamed, func() bool { named, _ := out.named(pid, kind); return named > 0 }), kind)
				}
			}
			for pid, kind := range kinds {
				if !on[kind] {
					out.follow(pid)
					out.take(pid, 200)
				}
				named, all := out.named(pid, kind)
				t.Logf("%s: %d of %d samples have a function with a file", kind, named, all)
				if !on[kind] {
					require.Zero(t, named, kind)
				}
			}
			r.stop()
		})
	}
}

// named returns how many samples of a process have a function with a file in a frame of a kind.
func (s *chainSink) named(pid int64, kind string) (named, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stack := range s.processes[pid].stacks {
		all += stack.samples
		if slices.ContainsFunc(stack.frames, func(f chainFrame) bool { return f.kind == kind && f.file != "" }) {
			named += stack.samples
		}
	}
	return named, all
}
