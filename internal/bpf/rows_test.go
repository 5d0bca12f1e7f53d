//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// The frames of code without frame pointers, up to the program's entry, and
// none of them while there are no rows.
func TestRows(t *testing.T) {
	const depth = 500
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, buildTargetWith(t, "-fomit-frame-pointer", "-momit-leaf-frame-pointer"), "depth-500")
	for _, id := range loadRows(t, s, tgt.pid) {
		require.NoError(t, s.RemoveUnwindTable(id))
	}
	require.NoError(t, s.Start())
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid || len(r.KernelFrames) > 0 {
			return false
		}
		require.Equal(t, record.OutcomeNoRows.String(), r.UserStack.String())
		seen++
		return seen == samplesPerState
	})
	loadRows(t, s, tgt.pid)
	loaded := skipOlder(t, s)
	for range 3 {
		readUntil(t, s, func(r *Record) bool {
			if r.PID != tgt.pid || r.TimeNs < loaded || len(r.KernelFrames) > 0 || !tgt.in(r.UserFrames[0]) || len(r.UserFrames) < depth {
				return false
			}
			same := 0
			for _, addr := range r.UserFrames[1:] {
				if tgt.in(addr) {
					same++
				}
			}
			require.Equal(t, depth, same)
			require.Equal(t, record.OutcomePresent, r.UserStack)
			require.Greater(t, len(r.UserFrames), depth+2, "main and its callers")
			return true
		})
	}
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
		if r.PID != pid || len(r.KernelFrames) == 0 || len(r.UserFrames) < 2 || r.UserFrames[0]-start >= stacksBytes {
			return false
		}
		require.Equal(t, record.OutcomePresent.String(), r.UserStack.String())
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
	other := &record.UnwindTable{
		Rules: []record.UnwindRule{{}, {CFA: record.CFAEnd}}, Rows: []record.UnwindRow{1 << 16}, Index: make([]uint32, blocks+1),
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
		require.Equal(t, record.OutcomeNoRows.String(), r.UserStack.String())
		seen++
		return seen == samplesPerState
	})
}

// What is set is there, and what is taken back is gone: no more memory than was asked for.
func TestRowsReleased(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 19, RingBufferBytes: 1 << 20})
	table := &record.UnwindTable{Rules: make([]record.UnwindRule, 300), Index: make([]uint32, 2000), Rows: make([]record.UnwindRow, 5000)}
	require.Equal(t, 2+2+5, table.Pages())
	seen := map[record.TableID]bool{}
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

	id := record.ProcessID{TGID: 1, StartNs: 2, ExecID: 3}
	count := func() (chunks, lists int) {
		var key record.UnwindChunkKey
		var chunk record.UnwindChunk
		for it := s.objs.UnwindMappings.Iterate(); it.Next(&key, &chunk); {
			chunks++
		}
		var process record.ProcessID
		var entry record.ProcessEntry
		for it := s.objs.Processes.Iterate(); it.Next(&process, &entry); {
			lists++
		}
		return chunks, lists
	}
	for _, n := range []int{17, 0, record.MaxUnwindMappings, 1} {
		require.NoError(t, s.SetUnwindMappings(id, make([]record.UnwindMapping, n), 0))
		chunks, lists := count()
		require.Equal(t, (n+record.UnwindChunkMappings-1)/record.UnwindChunkMappings, chunks)
		require.Equal(t, 1, lists)
	}
	require.Error(t, s.SetUnwindMappings(id, make([]record.UnwindMapping, record.MaxUnwindMappings+1), 0))
	require.NoError(t, s.ForgetMappings(id))
	require.NoError(t, s.ForgetMappings(id), "twice")
	chunks, lists := count()
	require.Zero(t, chunks+lists)
}

// Processes are told of, and so is what maps take, while the kernel waits for its programs because a table comes or goes.
func TestTablesAreWaitedFor(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 19, RingBufferBytes: 1 << 20})
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	done := make(chan error, 1)
	go func() {
		s.MapBytes()
		done <- s.SetUnwindMappings(record.ProcessID{TGID: 1, StartNs: 2, ExecID: 3}, make([]record.UnwindMapping, 1), 0)
	}()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "they wait as well")
	}
}

// What is counted for a table is no less than what the kernel says, and not twice as much.
func TestTableBytes(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 19, RingBufferBytes: 1 << 20})
	for _, rows := range []int{1, 1000, 6000, 8000, 50_000} {
		table := &record.UnwindTable{Rules: make([]record.UnwindRule, 2), Index: []uint32{0, uint32(rows)}, Rows: make([]record.UnwindRow, rows)}
		id, err := s.AddUnwindTable(table)
		require.NoError(t, err)
		var m *ebpf.Map
		require.NoError(t, s.objs.UnwindTables.Lookup(s.tables.slots[id].slot, &m))
		told := memlock(m)
		require.NoError(t, m.Close())
		require.NotZero(t, told)
		require.GreaterOrEqual(t, table.KernelBytes(), told, rows)
		require.Less(t, table.KernelBytes(), 2*told)
		require.Equal(t, table.KernelBytes(), s.tables.bytes)
		require.NoError(t, s.RemoveUnwindTable(id))
	}
}

// What a program may still look at is freed when no program does: while a slot gives a table back, the
// table is held.
func TestTableOutlivesSlot(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 19, RingBufferBytes: 1 << 20})
	table := &record.UnwindTable{Rules: make([]record.UnwindRule, 1), Index: make([]uint32, 1), Rows: make([]record.UnwindRow, 1)}
	id, err := s.AddUnwindTable(table)
	require.NoError(t, err)
	loaded := s.tables.slots[id]
	// As RemoveUnwindTable does first.
	require.NoError(t, s.objs.UnwindTables.Delete(loaded.slot))
	var page [record.UnwindPageBytes]byte
	require.NoError(t, loaded.m.Lookup(uint32(0), &page))
	require.NoError(t, s.objs.UnwindTables.Put(loaded.slot, loaded.m))
	require.NoError(t, s.RemoveUnwindTable(id))
	require.Error(t, loaded.m.Lookup(uint32(0), &page), "closed in the end")
	_, err = s.AddUnwindTable(table)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Empty(t, s.tables.slots, "so does what is there at the end")
}

// There are as many slots as there may be tables.
func TestTooManyTables(t *testing.T) {
	var all tables
	for slot := range uint32(record.MaxUnwindTables) {
		got, ok := all.take()
		require.True(t, ok)
		require.Equal(t, slot, got)
	}
	_, ok := all.take()
	require.False(t, ok)
	require.ErrorIs(t, ErrTooManyTables, unix.ENOSPC)
	all.free = append(all.free, 7)
	got, ok := all.take()
	require.True(t, ok)
	require.EqualValues(t, 7, got)
}

// Package unwind knows the layout by values of its own.
func TestRowsEqualUnwind(t *testing.T) {
	require.EqualValues(t, record.UnwindBlockBytes, record.UnwindBlockBytes)
	require.EqualValues(t, record.UnwindRuleBytes, unsafe.Sizeof(record.UnwindRule{}))
	for c, g := range map[profilerCfaKind]record.CFAKind{
		profilerCfaKindCFA_NONE:     record.CFANone,
		profilerCfaKindCFA_END:      record.CFAEnd,
		profilerCfaKindCFA_SP:       record.CFASP,
		profilerCfaKindCFA_FP:       record.CFAFP,
		profilerCfaKindCFA_REG:      record.CFAReg,
		profilerCfaKindCFA_DEREF_SP: record.CFADerefSP,
		profilerCfaKindCFA_DEREF_FP: record.CFADerefFP,
		profilerCfaKindCFA_PLT:      record.CFAPLT,
		profilerCfaKindCFA_SIGNAL:   record.CFASignal,
		profilerCfaKindCFA_SWITCH:   record.CFASwitch,
	} {
		require.EqualValues(t, c, g)
	}
	for c, g := range map[profilerRaKind]record.RAKind{
		profilerRaKindRA_OFFSET: record.RAOffset, profilerRaKindRA_REGISTER: record.RARegister, profilerRaKindRA_INTERRUPTED: record.RAInterrupted,
	} {
		require.EqualValues(t, c, g)
	}
	for c, g := range map[profilerFpKind]record.FPKind{
		profilerFpKindFP_SAME: record.FPSame, profilerFpKindFP_OFFSET: record.FPOffset, profilerFpKindFP_UNDEFINED: record.FPUndefined,
		profilerFpKindFP_FRAME: record.FPFrame,
	} {
		require.EqualValues(t, c, g)
	}
}
