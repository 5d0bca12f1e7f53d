//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// hotSpotEnv names a compiled testdata/bpf/hotspot.c, for machines without a compiler.
const hotSpotEnv = "CUSTOM_LABELS_BPF_HOTSPOT"

func buildHotSpot(t *testing.T) string {
	t.Helper()
	if built := os.Getenv(hotSpotEnv); built != "" {
		return built
	}
	out := filepath.Join(t.TempDir(), "hotspot")
	b, err := exec.Command("gcc", "-O2", "-o", out, "../../testdata/bpf/hotspot.c").CombinedOutput()
	require.NoError(t, err, "%s", b)
	return out
}

// hotSpotOf has the offsets of HotSpot 17 that the program uses.
func hotSpotOf(heap, segments uint64) record.RuntimeProcess {
	const heapBytes = 1 << 20
	return record.RuntimeProcess{Kind: record.RuntimeHotSpot, HotSpot: record.HotSpotProcess{
		Low: heap, High: heap + heapBytes,
		Interpreter: heap + heapBytes/2, InterpreterLimit: heap + heapBytes,
		Heaps:    [record.MaxHotSpotHeaps]record.HotSpotHeap{{Start: heap, Limit: heap + heapBytes, Segments: segments}},
		BlobName: 96, BlobSize: 12, BlobFrameSize: 28, BlobFrameComplete: 20, BlobCode: 32,
		Method: 112, CompileID: 304, VerifiedEntry: 224, DeoptHandler: 128, DeoptMHHandler: 136, OrigPC: 300,
		ConstMethod: 8, Constants: 8, ConstBytes: 48, CodeSize: 32, NameIndex: 34, SignatureIndex: 36, IDNum: 38,
		PoolHolder: 24, KlassName: 24, SegmentShift: 7, BlockBytes: 16, BytecodeSlot: 64,
	}}
}

// Whatever a program that claims to be a HotSpot has in its tables and on its stack, the walk ends,
// and says why.
func TestHostileHotSpot(t *testing.T) {
	program := buildHotSpot(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	needFileNames(t, s) // as kernels do in which runtimes are walked
	require.NoError(t, s.Start())
	const words = 2 // of a frame
	for kind, want := range map[string]struct {
		outcome record.Outcome
		words   int
		runtime bool // the innermost frame is one of it
	}{
		"endless":               {record.OutcomeTruncated, record.MaxUserFrames, true},
		"huge_frame":            {record.OutcomeInvalid, words, true},
		"no_name":               {record.OutcomeInvalid, 1, false},
		"small_blob":            {record.OutcomeInvalid, 1, false},
		"free_segments":         {record.OutcomeInvalid, 1, false},
		"no_segments":           {record.OutcomeInvalid, 1, false},
		"long_way":              {record.OutcomeInvalid, 1, false},
		"stubs":                 {record.OutcomeTruncated, record.MaxUserFrames, true},
		"continuation":          {record.OutcomeTruncated, record.MaxUserFrames, true},
		"continuation_high":     {record.OutcomeTruncated, record.MaxUserFrames, true},
		"at_end":                {record.OutcomeTruncated, record.MaxUserFrames, true}, // not hostile: code heaps have such ends
		"interpreted":           {record.OutcomeTruncated, record.MaxUserFrames, true},
		"interpreted_circle":    {record.OutcomeNoRows, 2*words - 1, true},
		"interpreted_no_method": {record.OutcomeInvalid, words, true},
		"interpreted_below":     {record.OutcomeInvalid, words, true},
	} {
		if kind == "interpreted_below" && runtime.GOARCH == "arm64" {
			// Where the caller is interpreted, that may be so: it is not looked at.
			want.outcome, want.words = record.OutcomeTruncated, record.MaxUserFrames
		}
		t.Run(kind, func(t *testing.T) {
			var pid uint32
			var heap, segments uint64
			_, err := fmt.Sscan(startProgram(t, program, kind), &pid, &heap, &segments)
			require.NoError(t, err)
			id := identify(t, s, pid)
			process := hotSpotOf(heap, segments)
			if kind == "continuation_high" {
				process.HotSpot.High, process.HotSpot.ContinuationReturn = math.MaxUint64, heap+1<<20-8
			}
			require.NoError(t, s.SetRuntime(id, process))
			require.NoError(t, s.SetUnwindMappings(id, nil, 0))
			var told unix.Timespec
			require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &told))
			before, err := s.Counters()
			require.NoError(t, err)
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.PID != pid || r.TimeNs < uint64(told.Nano()) || len(r.UserFrames) == 0 || r.UserFrames[0] >= 1<<63 != want.runtime ||
					!want.runtime && r.UserFrames[0]-heap >= 1<<20 {
					return false
				}
				seen++
				require.Equal(t, want.outcome.String(), r.UserStack.String())
				require.Len(t, r.UserFrames, want.words)
				if kind == "stubs" || strings.HasPrefix(kind, "continuation") {
					// Only behind one of the stubs of continuations there are frames in the heap.
					require.Equal(t, kind != "stubs", record.RuntimeWord(r.UserFrames[words]).Position() == record.HotSpotInHeap)
				}
				return seen > 30
			})
			after, err := s.Counters()
			require.NoError(t, err)
			if want.outcome == record.OutcomeTruncated {
				require.Greater(t, after.RuntimeCut, before.RuntimeCut)
			} else {
				require.Greater(t, after.RuntimeInvalid, before.RuntimeInvalid)
			}
			require.NoError(t, s.ForgetMappings(id))
		})
	}
}
