//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// v8Env names a compiled testdata/bpf/v8.c, for machines without a compiler.
const v8Env = "CUSTOM_LABELS_BPF_V8"

// v8Process has the types and offsets of testdata/bpf/v8.c.
var v8Process = record.V8Process{
	FunctionFirst: 1, FunctionLast: 1, SharedType: 2, CodeType: 3, StreamType: 4, ListType: 5, ScriptType: 6, BytecodeType: 7,
	FunctionShared: 8,
	SharedData:     32, SharedBuiltin: 40, SharedName: 48, SharedScript: 56, SharedLiteral: 64,
	CodeDeopt: 8, CodeStart: 16, CodeFlags: 24, CodeSize: 28, Baseline: 3, Builtin: 2, StreamHeader: 16, DeoptShared: 8,
}

// startV8 starts a sampler and testdata/bpf/v8.c, of which it is told, and returns the PID of that and the
// objects that it names.
func startV8(t *testing.T, kind string) (s *Sampler, pid uint32, objects [2]uint64) {
	t.Helper()
	s = newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	needFileNames(t, s) // as kernels do in which runtimes are walked
	require.NoError(t, s.Start())
	program := os.Getenv(v8Env)
	if program == "" {
		program = filepath.Join(t.TempDir(), "v8")
		out, err := exec.Command("gcc", "-O2", "-o", program, "../../testdata/bpf/v8.c").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	var start uint64
	_, err := fmt.Sscan(startProgram(t, program, kind), &pid, &start, &objects[0], &objects[1])
	require.NoError(t, err)
	tellV8(t, s, pid)
	return s, pid, objects
}

// loops reports whether the instruction at an offset in loop of testdata/bpf/v8.c has the frame
// pointer that it is called with. An emulator interrupts the others, too, as often.
func loops(at uint64) bool {
	if runtime.GOARCH == "arm64" {
		return at >= 8 && at < 16
	}
	return at >= 4 && at < 9
}

// tellV8 tells the sampler that a process is one of testdata/bpf/v8.c; samples taken from then on, by CLOCK_MONOTONIC,
// know it.
func tellV8(t *testing.T, s *Sampler, pid uint32) (since uint64) {
	t.Helper()
	id := identify(t, s, pid)
	require.NoError(t, s.SetRuntime(id, record.RuntimeProcess{Kind: record.RuntimeV8, V8: v8Process}))
	require.NoError(t, s.SetUnwindMappings(id, nil, 0))
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return uint64(now.Nano())
}

// What stacks had is not believed of later ones: where a function was compiled anew, to the same
// place, its frames have the code that runs, though what it was before still looks as it did; and
// where the code became another function's, it is that one's.
func TestV8CodeReplaced(t *testing.T) {
	const loopBytes, samples = 256, 100
	s, pid, codes := startV8(t, "replaced")
	var seen [2]int
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid || len(r.UserFrames) < 2 || r.UserFrames[0] < 1<<63 {
			return false
		}
		position := record.RuntimeWord(r.UserFrames[0]).Position()
		require.Positive(t, position, "it is in the code")
		loop, at := (position-1)/loopBytes, (position-1)%loopBytes
		if !loops(uint64(at)) {
			return false
		}
		require.Equal(t, codes[loop], r.UserFrames[1])
		require.Len(t, r.UserFrames, 2, "it is the function's of the frame")
		seen[loop]++
		return min(seen[0], seen[1]) >= samples
	})
}

// Code of the baseline compiler that runs in a frame of another function does not take itself from that
// of its own.
func TestV8BaselineCode(t *testing.T) {
	s, pid, shared := startV8(t, "baseline")
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid || len(r.UserFrames) != 4 || r.UserFrames[0] < 1<<63 {
			return false
		}
		require.Equal(t, shared[0], r.UserFrames[1])
		require.Zero(t, record.RuntimeWord(r.UserFrames[0]).Position(), "it is not in its own code")
		require.Equal(t, shared[1], r.UserFrames[3])
		require.EqualValues(t, 1, record.RuntimeWord(r.UserFrames[2]).Position())
		seen++
		return seen >= 100
	})
}

// What is interpreted by a copy of the interpreter's entry has its place in the bytecode. Words that look so in the
// frame of other code are none.
func TestV8InterpreterCopied(t *testing.T) {
	for kind, positions := range map[string][2]uint32{"copied": {42, 47}, "spilled": {0, 0}} {
		t.Run(kind, func(t *testing.T) {
			s, pid, shared := startV8(t, kind)
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.PID != pid || len(r.UserFrames) != 4 || r.UserFrames[0] < 1<<63 {
					return false
				}
				for i := range positions {
					require.Equal(t, shared[i], r.UserFrames[2*i+1])
					require.Equal(t, positions[i], record.RuntimeWord(r.UserFrames[2*i]).Position())
				}
				seen++
				return seen >= 100
			})
		})
	}
}

// A function that has called itself, and has no frame yet, is on the stack twice.
func TestV8CodeCallsItself(t *testing.T) {
	s, pid, codes := startV8(t, "again")
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid || len(r.UserFrames) < 2 || r.UserFrames[0] < 1<<63 {
			return false
		}
		inner := record.RuntimeWord(r.UserFrames[0]).Position()
		if inner < 12 {
			return false // the outer one has just begun
		}
		require.Len(t, r.UserFrames, 4)
		require.Equal(t, codes[0], r.UserFrames[1])
		require.Equal(t, codes[0], r.UserFrames[3])
		outer := record.RuntimeWord(r.UserFrames[2]).Position()
		require.Positive(t, outer)
		require.Less(t, outer, inner, "it is behind the call")
		seen++
		return seen >= 100
	})
}

// A function of which not all can be read, for the cookie, has no frame.
func TestV8NoSource(t *testing.T) {
	s, pid, _ := startV8(t, "no_source")
	since := tellV8(t, s, pid)
	before, err := s.Counters()
	require.NoError(t, err)
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid || r.TimeNs < since || len(r.UserFrames) == 0 || len(r.KernelFrames) > 0 {
			return false
		}
		for _, f := range r.UserFrames {
			require.Less(t, f, uint64(1<<63))
		}
		seen++
		return seen >= 100
	})
	after, err := s.Counters()
	require.NoError(t, err)
	require.Greater(t, after.RuntimeInvalid, before.RuntimeInvalid)
}

// The begin of code is found from far behind it, beyond what is read at once.
func TestV8CodeFar(t *testing.T) {
	const far = 20_000
	s, pid, codes := startV8(t, "far")
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid || len(r.UserFrames) < 2 || r.UserFrames[0] < 1<<63 {
			return false
		}
		require.Equal(t, codes[0], r.UserFrames[1])
		require.Greater(t, record.RuntimeWord(r.UserFrames[0]).Position(), uint32(far))
		seen++
		return seen >= 100
	})
}

// A frame at the begin of what is mapped of the stack leads to its caller, though more than that is wanted below it.
func TestV8StackEdge(t *testing.T) {
	s, pid, objects := startV8(t, "edge")
	shared, start := objects[0], objects[1]
	since := tellV8(t, s, pid)
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid || r.TimeNs < since || len(r.UserFrames) == 0 || !loops(r.UserFrames[0]-start) {
			return false
		}
		require.Len(t, r.UserFrames, 3)
		require.Equal(t, shared, r.UserFrames[2], "the caller's function")
		seen++
		return seen >= 100
	})
}

// What a map says in one process says nothing of another, where the same address has another map.
func TestV8Processes(t *testing.T) {
	const samples = 100
	s, pid, objects := startV8(t, "forked")
	child := uint32(objects[1])
	since := tellV8(t, s, child)
	var named, bare int
	readUntil(t, s, func(r *Record) bool {
		if r.TimeNs < since || len(r.UserFrames) == 0 {
			return false
		}
		isNamed := slices.ContainsFunc(r.UserFrames, func(f uint64) bool { return f >= 1<<63 })
		switch {
		case r.PID == pid && isNamed:
			named++
		case r.PID == child:
			require.False(t, isNamed, "the type of its map is another")
			bare++
		}
		return min(named, bare) >= samples
	})
}
