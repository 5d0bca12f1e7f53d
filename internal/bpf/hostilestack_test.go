//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// stacksEnv names a compiled testdata/bpf/stacks.c, for machines without a compiler.
const stacksEnv = "CUSTOM_LABELS_BPF_STACKS"

func buildStacks(t *testing.T) string {
	t.Helper()
	if built := os.Getenv(stacksEnv); built != "" {
		return built
	}
	out := filepath.Join(t.TempDir(), "stacks")
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	b, err := exec.Command("gcc", "-O2", "-o", out,
		"../../testdata/bpf/stacks.c", "../../testdata/bpf/stacks_"+machine+".S").CombinedOutput()
	require.NoError(t, err, "%s", b)
	return out
}

// Whatever a program makes of its stack and its tables, the walk ends, and says
// why; the innermost frame is right.
func TestHostileStacks(t *testing.T) {
	program := buildStacks(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	type result struct {
		outcome record.Outcome
		frames  int
	}
	kinds := map[string]result{
		"wild_sp":       {record.OutcomeFault, 1},
		"kernel_sp":     {record.OutcomeFault, 1},
		"far_cfa":       {record.OutcomeFault, 1},
		"cfa_below":     {record.OutcomeInvalid, 1},
		"cfa_stays":     {record.OutcomeInvalid, 2},
		"kernel_caller": {record.OutcomeInvalid, 1},
		"calls_itself":  {record.OutcomeTruncated, record.MaxUserFrames},
		"signal_loop":   {record.OutcomeTruncated, record.MaxUserFrames},
		"fp_circle":     {record.OutcomeNoRows, 1},
		"fp_unmapped":   {record.OutcomeNoRows, 1},
		"fp_kernel":     {record.OutcomeNoRows, 1},
		"fp_misaligned": {record.OutcomeNoRows, 1},
		"fp_below_sp":   {record.OutcomeNoRows, 1},
		"fp_zero":       {record.OutcomeNoRows, 1},
	}
	if runtime.GOARCH == "amd64" {
		kinds["split_word"] = result{record.OutcomePresent, 2}
		kinds["fp_lower"] = result{record.OutcomeNoRows, 1}
		kinds["fp_lower_no_call"] = result{record.OutcomeNoRows, 1}
		kinds["fp_upper"] = result{record.OutcomeNoRows, 1}
		kinds["fp_upper_again"] = result{record.OutcomeNoRows, 3}
		kinds["fp_behind_nop"] = result{record.OutcomeNoRows, 2}
		kinds["fp_behind_call_of_table"] = result{record.OutcomeNoRows, 2}
	}
	for kind, want := range kinds {
		t.Run(kind, func(t *testing.T) {
			pid, start := startStacks(t, program, kind)
			tables := loadRows(t, s, pid)
			var loaded unix.Timespec
			require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &loaded))
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.PID != pid || r.TimeNs < uint64(loaded.Nano()) || r.UserFrames[0]-start >= stacksBytes {
					return false
				}
				seen++
				require.Equal(t, want.outcome.String(), r.UserStack.String())
				require.Len(t, r.UserFrames, want.frames)
				return seen > 30
			})
			for _, id := range tables {
				require.NoError(t, s.RemoveUnwindTable(id))
			}
		})
	}
}

// In code that came from another stack, a zero in the register does not say that the stack ends here.
func TestZeroBehindSwitch(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	pid, start := startStacks(t, buildStacks(t), "fp_zero")
	r := &recursion{s: s, target: target{pid: pid}, id: identify(t, s, pid)}
	rules := []record.UnwindRule{{}, {CFA: record.CFASwitch}}
	r.use(t, r.table(t, start&^(record.UnwindBlockBytes-1), 2, rules, []span{{start, 1}}))
	var told unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &told))
	seen := 0
	readUntil(t, s, func(rec *Record) bool {
		if rec.PID != pid || rec.TimeNs < uint64(told.Nano()) || rec.UserFrames[0]-start >= stacksBytes {
			return false
		}
		seen++
		require.Equal(t, record.OutcomeNoRows.String(), rec.UserStack.String())
		require.Len(t, rec.UserFrames, 1)
		return seen > 30
	})
}

// Code without rows that keeps frame pointers saves what its caller has in the register. Where that
// is no frame pointer, the caller has rows that do without.
func TestKeeperOfFramePointers(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		return // compilers keep frame pointers there
	}
	program := buildStacks(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	pid, start := startStacks(t, program, "fp_of_keeper")
	loadRows(t, s, pid)
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid || r.UserStack != record.OutcomePresent || len(r.UserFrames) == 0 { // in its exec
			return false
		}
		require.Less(t, r.UserFrames[0]-start, uint64(stacksBytes))
		require.Less(t, r.UserFrames[1]-start, r.UserFrames[0]-start)
		require.GreaterOrEqual(t, len(r.UserFrames), 4, "main, and what calls it")
		return true
	})
}

// What a program returns to from a signal may look like a frame of a runtime, and is none.
func TestReturnToNoAddress(t *testing.T) {
	program := buildStacks(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	pid, _ := startStacks(t, program, "no_address")
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid {
			return false
		}
		for _, f := range r.UserFrames {
			_, ok := record.RuntimeWordOf(f)
			require.False(t, ok, "%#x", f)
		}
		if r.UserStack == record.OutcomeInvalid {
			require.Empty(t, r.UserFrames)
			seen++
		}
		return seen > 30
	})
}

// stacksBytes is longer than a function of stacks.c.
const stacksBytes = 192

func startStacks(t *testing.T, path, kind string) (pid uint32, start uint64) {
	t.Helper()
	_, err := fmt.Sscan(startProgram(t, path, kind), &pid, &start)
	require.NoError(t, err)
	return pid, start
}
