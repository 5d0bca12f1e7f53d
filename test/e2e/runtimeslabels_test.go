//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// labelledFunctions are those that a label names, in test/realwriters/node/functions.js and
// testdata/runtimes/labelled.py.
var labelledFunctions = []string{"alpha", "beta", "gamma", "delta"}

// minLabelled is the least share of samples in a labelled function that have its label: the
// garbage collector makes for some without.
const minLabelled = 0.9

// functionLabels is the next consumer. It compares the label "function" of each sample of a
// process with the innermost labelled function on its stack.
type functionLabels struct {
	pid        int64
	kind, file string // of the functions' frames

	mu                                   sync.Mutex
	agree, disagree, unlabelled, outside int
	odd                                  []string
	// since is when a whole stack first had the function of its label, and chainWarm more: before
	// that there are no rows of some of its files, and frame pointers may lead to functions.
	since uint64
}

func (s *functionLabels) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *functionLabels) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	visitStacks(p, func(pid int64) bool { return pid == s.pid }, s.compare)
	return nil
}

// compare takes a sample with a label, and a labelled function on its stack; of either there may
// be none.
func (s *functionLabels) compare(_ int64, of *chainStack, times []uint64) {
	label, on := of.function, ""
	i := slices.IndexFunc(of.frames, func(f chainFrame) bool {
		return f.kind == s.kind && slices.Contains(labelledFunctions, f.name) && filepath.Base(f.file) == s.file
	})
	if i >= 0 {
		on = of.frames[i].name
	}
	n := 0
	for _, at := range times {
		if s.since == 0 && !of.cut && on != "" && label == on {
			s.since = at + uint64(chainWarm)
		}
		if s.since != 0 && at >= s.since {
			n++
		}
	}
	switch {
	case on != "" && label != "" && on != label: // wrong at any time
		s.disagree += len(times)
		s.odd = append(s.odd, label+" in "+chainOf(of.frames))
	case on != "" && label != "":
		s.agree += n
	case on != "":
		s.unlabelled += n
	case label != "":
		s.outside += n
	}
}

// take waits for so many samples with a label in a labelled function.
func (s *functionLabels) take(t *testing.T, samples int) {
	awaitCount(t, &s.mu, "samples with a label in a labelled function", samples, func() int { return s.agree + s.disagree })
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d agree, %d do not, %d without a label, %d outside of the functions", s.agree, s.disagree, s.unlabelled, s.outside)
}

// muslPython is what scripts/pythons.sh builds for musl. It has no ctypes, which publishers need:
// there is no libffi for musl here.
const muslPython = "python3.13m"

// TestRuntimesPythonLabels: where a label that Python code publishes names the function that
// runs, each sample's label is that of the function on its stack: in generators, callbacks from
// native code, exception handlers and threads.
func TestRuntimesPythonLabels(t *testing.T) {
	commands := slices.DeleteFunc(ends(pythons()), func(command string) bool {
		return filepath.Base(command) == muslPython
	})
	require.NotEmpty(t, commands, "no CPython 3.11 to 3.14")
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
				measurePythonLabels(t, bounds, command, size(30_000, 2_000, 300)/len(commands))
			})
		})
	}
}

func measurePythonLabels(t *testing.T, bounds *testutil.Bounds, command string, samples int) {
	script, err := filepath.Abs("../../testdata/runtimes/labelled.py")
	require.NoError(t, err)
	publisher, err := filepath.Abs("../../examples/publish/python")
	require.NoError(t, err)
	words := strings.Fields(command)
	w := testutil.StartPath(t, words[0], slices.Concat(words[1:], []string{script, publisher})...)
	lowerPriority(t, w.PID)
	out := &functionLabels{pid: int64(w.PID), kind: frameCPython, file: "labelled.py"}
	r := startReceiver(t, out, atRate(chainRate), manySets)
	out.take(t, samples)
	r.stop()
	require.Empty(t, out.odd)
	all := out.agree + out.unlabelled + out.outside
	assert.GreaterOrEqual(bounds, float64(out.agree), minLabelled*float64(all))
	assert.LessOrEqual(bounds, float64(out.outside), (1-pythonMinWhole)*float64(all), "with a label, and no labelled function on the stack")
}
