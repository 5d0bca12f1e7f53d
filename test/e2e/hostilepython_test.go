//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const (
	runtimeNice        = 19
	runtimeMinWhole    = pythonMinWhole
	runtimeWait        = 3 * time.Minute
	unsupportedRuntime = "an offset where no field can be"
)

var (
	runtimeSamples  = size(200, 20, 5)     // of each hostile program
	besideSamples   = size(5_000, 200, 50) // of the program beside them
	hostileFunction = regexp.MustCompile(`^hostile_[ab]$`)
)

// hostileRuntimes are the modes of testdata/hostile/python.c, with what the functions may be that
// its frames name; nil: it has none.
func hostileRuntimes() map[string]*regexp.Regexp {
	gone := regexp.MustCompile(`^(hostile_[ab]|<gone>)$`)
	return map[string]*regexp.Regexp{
		"valid":             hostileFunction,
		"changing":          gone,
		"freed":             gone,
		"too-many":          gone,
		"evaluation-cycle":  hostileFunction,
		"long-name":         regexp.MustCompile(`(?s)^hostile_a.{0,1000}.{0,15}$`),
		"wide-name":         regexp.MustCompile("^\uFFFD{9}$"),
		"control-name":      regexp.MustCompile("^\uFFFD\\[2J\uFFFD{5}$"),
		"no-text":           regexp.MustCompile(`^<gone>$`),
		"no-file":           gone,
		"long-lines":        gone,
		"bad-lines":         hostileFunction,
		"frame-cycle":       nil,
		"elsewhere":         nil,
		"no-thread":         nil,
		"thread-cycle":      nil,
		"interpreter-cycle": nil,
		"kernel-frame":      nil,
		"no-frame-memory":   nil,
		"no-address":        nil,
		"other-type":        nil,
		"no-name":           nil,
		unsupportedRuntime:  nil,
	}
}

// A runtimeProcess is a hostile program and what arrived of it.
type runtimeProcess struct {
	mode          string
	functions     *regexp.Regexp
	samples       int
	frames, wrong map[string]int // by function
}

// runtimeSink keeps the stacks of one honest program, and judges those of hostile ones.
type runtimeSink struct {
	chainSink
	hostile map[int64]*runtimeProcess
	strayed map[string]int // functions of hostile programs in other processes

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
			case of == nil && strings.Contains(f.name, "hostile_"):
				s.strayed[f.name]++
			case of == nil || f.kind != frameCPython:
			case of.functions != nil && of.functions.MatchString(f.name) && (f.file == "hostile" || f.name == goneFunction):
				of.frames[f.name]++
			default:
				of.wrong[fmt.Sprintf("%+v", f)]++
			}
		}
	})
	return s.chainSink.ConsumeProfiles(ctx, p)
}

// enough reports whether each hostile program has been judged often enough.
func (s *runtimeSink) enough() bool {
	s.judging.Lock()
	defer s.judging.Unlock()
	for _, p := range s.hostile {
		if p.samples < runtimeSamples || p.functions != nil && len(p.frames) == 0 {
			return false
		}
	}
	return true
}

// TestHostileRuntimes runs programs that say that they are CPython, with lists that do not end,
// pointers to nowhere, names that are none, more functions than are kept, and functions that go.
// They get frames of their own or none; a Python program beside them has all of its.
func TestHostileRuntimes(t *testing.T) {
	testutil.RequireBPF(t)
	commands := pythons()
	require.NotEmpty(t, commands, "no CPython 3.11 to 3.14")
	testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
		const source = "../../testdata/hostile/python.c"
		program := compileProgram(t, source, "-rdynamic")
		unsupported := compileProgram(t, source, "-rdynamic", "-DBAD_OFFSET")
		out := &runtimeSink{chainSink: chainSink{t: t, warm: isWarmPython}, hostile: map[int64]*runtimeProcess{}, strayed: map[string]int{}}
		for mode, functions := range hostileRuntimes() {
			path := program
			if mode == unsupportedRuntime {
				path = unsupported
			}
			w := testutil.StartPath(t, path, mode)
			require.NoError(t, unix.Setpriority(unix.PRIO_PROCESS, w.PID, runtimeNice))
			out.hostile[int64(w.PID)] = &runtimeProcess{mode: mode, functions: functions, frames: map[string]int{}, wrong: map[string]int{}}
		}
		w, facts := startPython(t, commands[0], "threads")
		honest := int64(w.PID)
		out.follow(honest)
		r := startReceiver(t, out, atRate(chainRate), manySets)

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
		enough := waitFor(runtimeWait, func() bool { // of functions, too: more than there is room for
			return out.enough() && r.metric("runtime_results", "result")["function_no_room"] > 0
		})
		results := r.metric("runtime_results", "result")
		r.stop()
		for _, p := range out.hostile {
			t.Logf("%-32s %4d samples, frames %v", p.mode, p.samples, p.frames)
			assert.Empty(t, p.wrong, p.mode)
		}
		t.Logf("beside them: %d samples, %.2f %% whole; %v", all, 100*float64(whole)/float64(all), results)
		require.True(t, enough, "samples of each")
		require.Empty(t, out.strayed, "functions of hostile programs in others")
		for _, result := range []string{
			"stack_whole", "stack_cut", "stack_no_thread", "stack_invalid",
			"function_read", "function_gone", "function_no_room", "file_unsupported",
		} {
			assert.Positive(t, results[result], result)
		}
		assert.GreaterOrEqual(bounds, float64(whole)/float64(all), runtimeMinWhole)
	})
}
