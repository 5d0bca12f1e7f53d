//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// The frames of code without frame pointers, up to the program's entry, and
// no more of them when the rows are gone.
func TestRows(t *testing.T) {
	const depth = 500
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, buildTargetWith(t, "-fomit-frame-pointer", "-momit-leaf-frame-pointer"), "depth-500")
	tables := loadRows(t, s, tgt.pid)
	require.NoError(t, s.Start())
	for range 3 {
		readUntil(t, s, func(r *Record) bool {
			if r.PID != tgt.pid || len(r.KernelFrames) > 0 || !tgt.in(r.UserFrames[0]) || len(r.UserFrames) < depth {
				return false
			}
			same := 0
			for _, addr := range r.UserFrames[1:] {
				if tgt.in(addr) {
					same++
				}
			}
			require.Equal(t, depth, same)
			require.Equal(t, labels.OutcomePresent, labels.Outcome(r.UserStack))
			require.Greater(t, len(r.UserFrames), depth+2, "main and its callers")
			return true
		})
	}
	for _, id := range tables {
		require.NoError(t, s.RemoveUnwindTable(id))
	}
	before := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid || len(r.KernelFrames) > 0 || labels.Outcome(r.UserStack) == labels.OutcomePresent {
			before++
			require.Less(t, before, 10_000, "without rows")
			return false
		}
		require.Equal(t, labels.OutcomeNoRows, labels.Outcome(r.UserStack))
		return true
	})
}

// Where a system call returns to may be behind the end of its function.
func TestEndsInSystemCall(t *testing.T) {
	program := buildStacks(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	pid, start := startStacks(t, program, "ends_in_call")
	loadRows(t, s, pid)
	require.NoError(t, s.Start())
	callers := map[uint64][]uint64{} // by where it is in user space
	readUntil(t, s, func(r *Record) bool {
		// An interrupt that waited for the system call to end finds the instruction behind it.
		if r.PID != pid || len(r.KernelFrames) == 0 || r.UserFrames[0]-start >= stacksBytes || len(r.UserFrames) == 1 {
			return false
		}
		require.Equal(t, labels.OutcomePresent.String(), labels.Outcome(r.UserStack).String())
		require.Greater(t, len(r.UserFrames), 3, "main and its callers")
		callers[r.UserFrames[0]] = append(callers[r.UserFrames[0]], r.UserFrames[1])
		return len(callers[r.UserFrames[0]]) > 30
	})
	// Interrupts find it anywhere; only in the system call is it so often.
	for _, of := range callers {
		if len(of) > 30 {
			for _, caller := range of {
				require.Less(t, caller-start, uint64(stacksBytes))
			}
		}
	}
}

// A table that was put into the slot of one that is gone is not taken for it.
func TestReusedTableSlot(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, buildTargetWith(t, "-fomit-frame-pointer", "-momit-leaf-frame-pointer"), "depth-100")
	tables := loadRows(t, s, tgt.pid)
	for _, id := range tables {
		require.NoError(t, s.RemoveUnwindTable(id))
	}
	// By its rows, any frame is the outermost one.
	const blocks = 4096
	other := &UnwindTable{
		Rules: []UnwindRule{{}, {CFA: uint8(unwind.CFAEnd)}}, Rows: []uint32{1 << 16}, Index: make([]uint32, blocks+1),
	}
	for i := range other.Index[1:] {
		other.Index[i+1] = 1
	}
	for range tables {
		_, err := s.AddUnwindTable(other)
		require.NoError(t, err)
	}
	require.EqualValues(t, len(tables), s.tables.used, "the slots are the same")
	require.NoError(t, s.Start())
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid || len(r.KernelFrames) > 0 || !tgt.in(r.UserFrames[0]) {
			return false
		}
		require.Equal(t, labels.OutcomeNoRows.String(), labels.Outcome(r.UserStack).String())
		seen++
		return seen == samplesPerState
	})
}

// What is set is there, and what is taken back is gone: no more memory than was asked for.
func TestRowsReleased(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 19, RingBufferBytes: 1 << 20})
	table := &UnwindTable{Rules: make([]UnwindRule, 300), Index: make([]uint32, 2000), Rows: make([]uint32, 5000)}
	require.Equal(t, (2+2+5)*UnwindPageBytes, table.Bytes())
	seen := map[TableID]bool{}
	for range 3 * 10 {
		id, err := s.AddUnwindTable(table)
		require.NoError(t, err)
		require.False(t, seen[id], "an id is not used again")
		seen[id] = true
		require.NoError(t, s.RemoveUnwindTable(id))
		require.NoError(t, s.RemoveUnwindTable(id), "twice")
	}
	require.EqualValues(t, 1, s.tables.used)
	require.Zero(t, s.tables.bytes)

	id := ProcessID{TGID: 1, StartNs: 2, ExecID: 3}
	count := func() (chunks, lists int) {
		var key profilerUnwindChunkKey
		var chunk profilerUnwindChunk
		for it := s.objs.UnwindMappings.Iterate(); it.Next(&key, &chunk); {
			chunks++
		}
		var process profilerProcessId
		var list profilerUnwindList
		for it := s.objs.UnwindLists.Iterate(); it.Next(&process, &list); {
			lists++
		}
		return chunks, lists
	}
	for _, n := range []int{17, 0, MaxUnwindMappings, 1} {
		require.NoError(t, s.SetUnwindMappings(id, make([]UnwindMapping, n), 0))
		chunks, lists := count()
		require.Equal(t, (n+UnwindChunkMappings-1)/UnwindChunkMappings, chunks)
		require.Equal(t, 1, lists)
	}
	require.Error(t, s.SetUnwindMappings(id, make([]UnwindMapping, MaxUnwindMappings+1), 0))
	require.NoError(t, s.ForgetMappings(id))
	require.NoError(t, s.ForgetMappings(id), "twice")
	chunks, lists := count()
	require.Zero(t, chunks+lists)
}

// There are as many slots as there may be tables.
func TestTooManyTables(t *testing.T) {
	var all tables
	for slot := range uint32(MaxUnwindTables) {
		got, ok := all.take()
		require.True(t, ok)
		require.Equal(t, slot, got)
	}
	_, ok := all.take()
	require.False(t, ok)
	all.free = append(all.free, 7)
	got, ok := all.take()
	require.True(t, ok)
	require.EqualValues(t, 7, got)
}

// Package unwind knows the layout by values of its own.
func TestRowsEqualUnwind(t *testing.T) {
	require.EqualValues(t, unwind.BlockBytes, UnwindBlockBytes)
	require.EqualValues(t, unwindRuleBytes, unsafe.Sizeof(unwind.Rule{}))
	for c, g := range map[profilerCfaKind]unwind.CFAKind{
		profilerCfaKindCFA_NONE:     unwind.CFANone,
		profilerCfaKindCFA_END:      unwind.CFAEnd,
		profilerCfaKindCFA_SP:       unwind.CFASP,
		profilerCfaKindCFA_FP:       unwind.CFAFP,
		profilerCfaKindCFA_REG:      unwind.CFAReg,
		profilerCfaKindCFA_DEREF_SP: unwind.CFADerefSP,
		profilerCfaKindCFA_DEREF_FP: unwind.CFADerefFP,
		profilerCfaKindCFA_PLT:      unwind.CFAPLT,
		profilerCfaKindCFA_SIGNAL:   unwind.CFASignal,
		profilerCfaKindCFA_SWITCH:   unwind.CFASwitch,
	} {
		require.EqualValues(t, c, g)
	}
	for c, g := range map[profilerRaKind]unwind.RAKind{
		profilerRaKindRA_OFFSET: unwind.RAOffset, profilerRaKindRA_REGISTER: unwind.RARegister,
	} {
		require.EqualValues(t, c, g)
	}
	for c, g := range map[profilerFpKind]unwind.FPKind{
		profilerFpKindFP_SAME: unwind.FPSame, profilerFpKindFP_OFFSET: unwind.FPOffset, profilerFpKindFP_UNDEFINED: unwind.FPUndefined,
		profilerFpKindFP_FRAME: unwind.FPFrame,
	} {
		require.EqualValues(t, c, g)
	}
}
