//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A recursion is a target that stays in a known number of frames of one function, which
// has a frame pointer, and rules of our own for it.
type recursion struct {
	target
	program string
	s       *Sampler
	// back is where each of its frames returns to, but for the outermost one, which returns to main.
	back, main uint64
	// frames of the stack, and how many of them are the function's.
	frames, own int
	id          record.ProcessID
	tables      []record.TableID
}

func startRecursion(t *testing.T, depth int) *recursion {
	t.Helper()
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	r := &recursion{program: buildTarget(t), s: s}
	r.target = startTarget(t, r.program, fmt.Sprintf("depth-%d", depth))
	r.id = identify(t, s, r.pid)
	require.NoError(t, s.SetUnwindMappings(r.id, nil, execPages(t, r.pid)))
	require.NoError(t, s.Start())
	r.frames, r.own, _ = r.walk(t, func(frames []uint64) { r.back, r.main = frames[1], frames[depth+1] })
	require.Equal(t, depth+1, r.own)
	if runtime.GOARCH == "amd64" { // it is behind the call of the function
		call := textOf(t, r.pid, r.back-5, 5)
		require.Equal(t, r.descend, r.back+uint64(int32(binary.LittleEndian.Uint32(call[1:]))))
	}
	return r
}

// walk returns how the stack is walked from now on.
func (r *recursion) walk(t *testing.T, visit func([]uint64)) (frames, own int, outcome record.Outcome) {
	t.Helper()
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	readUntil(t, r.s, func(rec *Record) bool {
		if rec.PID != r.pid || rec.TimeNs < uint64(now.Nano()) || len(rec.KernelFrames) > 0 || !r.in(rec.UserFrames[0]) {
			return false
		}
		frames, outcome = len(rec.UserFrames), rec.UserStack
		for _, addr := range rec.UserFrames {
			if r.in(addr) {
				own++
			}
		}
		visit(rec.UserFrames)
		return true
	})
	return frames, own, outcome
}

// A span is a rule that holds from an address on.
type span struct {
	from uint64
	rule int // of the table; 0: none
}

// table loads one that begins at base and has the spans.
func (r *recursion) table(t *testing.T, base uint64, blocks int, rules []record.UnwindRule, spans []span) record.UnwindMapping {
	t.Helper()
	table := &record.UnwindTable{Rules: rules}
	for _, s := range spans {
		for uint64(len(table.Index))*record.UnwindBlockBytes <= s.from-base {
			table.Index = append(table.Index, uint32(len(table.Rows)))
		}
		table.Rows = append(table.Rows, record.NewUnwindRow((s.from-base)%record.UnwindBlockBytes, uint16(s.rule)))
	}
	for len(table.Index) <= blocks {
		table.Index = append(table.Index, uint32(len(table.Rows)))
	}
	id, err := r.s.AddUnwindTable(table)
	require.NoError(t, err)
	r.tables = append(r.tables, id)
	limit := base + uint64(blocks)*record.UnwindBlockBytes
	return record.UnwindMapping{Start: base, Limit: limit, Text: base, Table: id, Blocks: uint32(blocks)}
}

// use has the stack walked by these mappings only.
func (r *recursion) use(t *testing.T, mappings ...record.UnwindMapping) {
	t.Helper()
	require.NoError(t, r.s.SetUnwindMappings(r.id, mappings, execPages(t, r.pid)))
}

// drop gives the tables back.
func (r *recursion) drop(t *testing.T) {
	t.Helper()
	for _, id := range r.tables {
		require.NoError(t, r.s.RemoveUnwindTable(id))
	}
	r.tables = nil
}

var end = record.UnwindRule{CFA: record.CFAEnd}

// requireEndsAtCaller: the stack ends at the innermost frame's caller.
func (r *recursion) requireEndsAtCaller(t *testing.T) {
	t.Helper()
	frames, _, outcome := r.walk(t, func([]uint64) {})
	require.Equal(t, 2, frames)
	require.Equal(t, record.OutcomePresent.String(), outcome.String())
}

// A row holds from its address up to the next one's, in whichever block and page those
// are; of a caller, the call counts and not what is behind it.
func TestRowBounds(t *testing.T) {
	r := startRecursion(t, 50)
	call := r.back - 1
	few := []record.UnwindRule{{}, end}
	many := make([]record.UnwindRule, 600)
	many[599] = end
	var filled, full []span
	const far = 2000 * record.UnwindBlockBytes
	for i := range uint64(3000) {
		filled = append(filled, span{from: call - far + i*600, rule: 0})
	}
	for i := range uint64(record.UnwindBlockBytes) {
		s := span{from: call + i}
		if i == 0 {
			s.rule = 1
		}
		full = append(full, s)
	}
	near := call &^ (record.UnwindBlockBytes - 1)
	for name, tc := range map[string]struct {
		base   uint64
		blocks int
		rules  []record.UnwindRule
		spans  []span
	}{
		"one byte":                {near - 2*record.UnwindBlockBytes, 5, few, []span{{call, 1}, {r.back, 0}}},
		"begins its block":        {call - 2*record.UnwindBlockBytes, 5, few, []span{{call, 1}, {r.back, 0}}},
		"far behind":              {call - far, 2002, many, append(filled, span{call, 599}, span{r.back, 0})},
		"a block full of rows":    {call - record.UnwindBlockBytes, 3, few, full},
		"ends where another does": {near - 2*record.UnwindBlockBytes, 5, few, []span{{call - 1, 0}, {call, 1}, {r.back, 0}, {r.back + 1, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			r.use(t, r.table(t, tc.base, tc.blocks, tc.rules, tc.spans))
			r.requireEndsAtCaller(t)
			r.drop(t)
		})
	}
	t.Run("of a block before", func(t *testing.T) {
		r.use(t, r.table(t, near-3*record.UnwindBlockBytes, 8, few, []span{{near - 3*record.UnwindBlockBytes + 7, 1}}))
		frames, _, outcome := r.walk(t, func([]uint64) {})
		require.Equal(t, 1, frames)
		require.Equal(t, record.OutcomePresent.String(), outcome.String())
		r.drop(t)
	})
}

// What was found for one address is not taken for another one's, or for that of another table,
// although both have the same place among the known rules.
func TestKnownRules(t *testing.T) {
	const placeBits, depth = 9, 50
	place := func(id record.TableID, offset uint64) uint64 { // as rule_at has it
		hash := (uint64(id)<<32 ^ offset) * 0x9e3779b97f4a7c15
		return (hash ^ hash>>32) >> (64 - placeBits)
	}
	r := startRecursion(t, depth)
	pin(t, r.pid, 0)
	call, at, other := r.back-1, uint64(100), uint64(200)
	for place(r.s.tables.next+1, at) != place(r.s.tables.next+1, other) {
		other++
	}
	byFP := record.UnwindRule{CFA: record.CFAFP, CFAOffset: 16, RAOffset: -8, FP: record.FPOffset, FPOffset: -16}
	base := call - at
	m := r.table(t, base, int(other/record.UnwindBlockBytes)+1, []record.UnwindRule{{}, end, byFP},
		[]span{{call, 1}, {r.back, 0}, {base + other, 2}, {base + other + 1, 0}})
	for range 3 {
		m.Text = call - at
		r.use(t, m)
		r.requireEndsAtCaller(t)
		m.Text = call - other
		r.use(t, m)
		r.requireWhole(t)
	}
	next := m.Table + 1
	for place(next, at) != place(m.Table, at) {
		next++
	}
	r.s.tables.next = next - 1
	second := r.table(t, base, 1, []record.UnwindRule{{}, byFP}, []span{{call, 1}, {r.back, 0}})
	for range 3 {
		m.Text = call - at
		r.use(t, m)
		r.requireEndsAtCaller(t)
		r.use(t, second)
		r.requireWhole(t)
	}
	require.NoError(t, r.s.RemoveUnwindTable(second.Table))
	r.requireWhole(t) // what is known of it is still true
	for place(0, other) != place(m.Table, at) {
		other++
	}
	r.use(t, m)
	r.requireEndsAtCaller(t)
	require.NoError(t, r.s.RemoveUnwindTable(m.Table))
	r.use(t, record.UnwindMapping{Start: m.Start, Limit: m.Limit, Text: call - other, Blocks: m.Blocks})
	r.requireWhole(t)
	r.use(t, m)
	r.requireEndsAtCaller(t) // code without a table takes no place
}

// requireWhole: the stack is as at the beginning.
func (r *recursion) requireWhole(t *testing.T) {
	t.Helper()
	frames, own, _ := r.walk(t, func([]uint64) {})
	require.Equal(t, r.own, own)
	require.Equal(t, r.frames, frames)
}

// Rows that are known by their file hold for another process that maps it elsewhere,
// wherever in the mapping their table begins, and for those pages only.
func TestTextsOfFile(t *testing.T) {
	r := startRecursion(t, 50)
	needFileNames(t, r.s)
	call := r.back - 1
	f, err := os.Open(r.program)
	require.NoError(t, err)
	defer f.Close()
	file, err := r.s.NameFile(f)
	require.NoError(t, err)
	m := mappingOf(t, r.pid, r.descend)
	page := uint64(os.Getpagesize())
	first, limit := uint32(m.Offset/page), uint32((m.Offset+m.Limit-m.Start+page-1)/page)
	next := startTarget(t, r.program, "depth-50")
	before := r.target
	for _, before := range []uint64{1, 2} { // blocks
		base := call&^(record.UnwindBlockBytes-1) - before*record.UnwindBlockBytes
		table := r.table(t, base, 5, []record.UnwindRule{{}, end}, []span{{call, 1}, {r.back, 0}})
		text := int64(base - (m.Start - m.Offset))
		r.target = next
		other := record.FileText{FirstPage: limit, LimitPage: limit + 1, Text: 4711}
		for _, texts := range [][]record.FileText{{{FirstPage: first, LimitPage: limit, Text: text}}, {other, other, {FirstPage: first, LimitPage: first + 1, Text: text}}} {
			require.NoError(t, r.s.SetFileRows(file, table.Table, texts))
			r.requireEndsAtCaller(t)
		}
		for _, texts := range [][]record.FileText{{}, {other}, {{FirstPage: first + 1, LimitPage: limit + 1, Text: text}}, {{FirstPage: 0, LimitPage: first, Text: text}}, {other, other, other, other, {FirstPage: first, LimitPage: limit, Text: text}}} {
			require.NoError(t, r.s.SetFileRows(file, table.Table, texts))
			_, _, outcome := r.walk(t, func([]uint64) {})
			require.Equal(t, record.OutcomeNoRows.String(), outcome.String())
		}
		r.drop(t)
	}
	r.target = before
}

// mappingOf is the mapping of a process that holds an address.
func mappingOf(t *testing.T, pid uint32, addr uint64) procfs.Mapping {
	t.Helper()
	for m, err := range (procfs.FS{Root: "/proc"}).Mappings(int(pid)) {
		require.NoError(t, err)
		if addr >= m.Start && addr < m.Limit {
			return m
		}
	}
	require.FailNow(t, "no mapping", "%#x of process %d", addr, pid)
	return procfs.Mapping{}
}

// A mapping is found wherever it stands in the list, from its first address to its last.
func TestManyMappings(t *testing.T) {
	r := startRecursion(t, 50)
	call := r.back - 1
	base := call&^(record.UnwindBlockBytes-1) - record.UnwindBlockBytes
	rules := []record.UnwindRule{{}, end}
	nothing, ends := r.table(t, base, 4, rules, nil), r.table(t, base, 4, rules, []span{{base, 1}})
	part := func(m record.UnwindMapping, start, limit uint64) record.UnwindMapping {
		m.Start, m.Limit = start, limit
		return m
	}
	own := []record.UnwindMapping{part(nothing, base, call), part(ends, call, r.back), part(nothing, r.back, nothing.Limit)}
	fill := func(list []record.UnwindMapping, n int, from uint64) []record.UnwindMapping {
		for i := range uint64(n) {
			list = append(list, part(nothing, from+i*0x1000, from+(i+1)*0x1000))
		}
		return list
	}
	befores := []int{500, record.MaxUnwindMappings - 3}
	for n := range 2*record.UnwindChunkMappings + 1 {
		befores = append(befores, n)
	}
	for _, before := range befores {
		for _, behind := range []int{0, 5, record.MaxUnwindMappings - 3 - before} {
			if before+3+behind > record.MaxUnwindMappings {
				continue
			}
			list := append(fill(nil, before, 0x10000), own...)
			r.use(t, fill(list, behind, nothing.Limit)...)
			r.requireEndsAtCaller(t)
		}
	}
}

// Each way to compute a frame from the one that it called. All give the same frames as the
// frame pointer does, where they are right.
func TestRules(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the frame pointer tells of the stack pointer on x86-64 only")
	}
	const depth = 50
	r := startRecursion(t, depth)
	call := r.back - 1
	base := call&^(record.UnwindBlockBytes-1) - record.UnwindBlockBytes
	// apply sets the rules of the innermost frame and of its callers.
	apply := func(t *testing.T, leaf, callers record.UnwindRule) (frames, own int, outcome record.Outcome) {
		t.Helper()
		table := r.table(t, base, 4, []record.UnwindRule{{}, leaf, callers}, []span{{r.descend, 1}, {call, 2}, {r.back, 1}, {r.descend + 512, 0}})
		r.use(t, table)
		frames, own, outcome = r.walk(t, func([]uint64) {})
		r.drop(t)
		return frames, own, outcome
	}
	whole := func(t *testing.T, leaf, callers record.UnwindRule) bool {
		t.Helper()
		frames, own, _ := apply(t, leaf, callers)
		return frames == r.frames && own == r.own
	}
	rule := func(cfa record.CFAKind, offset int, fp record.FPKind) record.UnwindRule {
		return record.UnwindRule{CFA: cfa, CFAOffset: int32(offset), RAOffset: -8, FP: fp, FPOffset: -16}
	}
	none := record.UnwindRule{}
	byFP := rule(record.CFAFP, 16, record.FPOffset)

	// The bytes of a frame are found by trying: only one number can be right.
	frameBytes := 0
	for n := 16; n <= 256 && frameBytes == 0; n += 8 {
		if whole(t, none, rule(record.CFASP, n, record.FPOffset)) {
			frameBytes = n
		}
	}
	require.NotZero(t, frameBytes)

	t.Run("frame_pointer", func(t *testing.T) {
		require.True(t, whole(t, byFP, byFP))
	})
	t.Run("lost_frame_pointer", func(t *testing.T) {
		frames, _, outcome := apply(t, none, rule(record.CFAFP, 16, record.FPUndefined))
		require.Equal(t, 3, frames)
		require.Equal(t, record.OutcomeNoRows.String(), outcome.String())
	})
	t.Run("frame_pointer_again", func(t *testing.T) {
		lost, found := rule(record.CFAFP, 16, record.FPUndefined), rule(record.CFASP, frameBytes, record.FPOffset)
		require.True(t, whole(t, lost, found))
		// In main it is needed, with a rule that tells its caller.
		spans := []span{{r.descend, 1}, {call, 2}, {r.back, 1}, {r.descend + 512, 0}}
		inMain := []span{{r.main - 1, 3}, {r.main, 0}}
		first, last := r.descend, r.main
		if r.main < r.descend {
			spans, first, last = append(inMain, spans...), r.main, r.descend
		} else {
			spans = append(spans, inMain...)
		}
		base := first&^(record.UnwindBlockBytes-1) - record.UnwindBlockBytes
		r.use(t, r.table(t, base, int((last-base)/record.UnwindBlockBytes)+3, []record.UnwindRule{{}, lost, found, byFP}, spans))
		frames, _, _ := r.walk(t, func([]uint64) {})
		require.Greater(t, frames, depth+2)
		r.drop(t)
	})
	t.Run("other_register", func(t *testing.T) {
		leaf := rule(record.CFAReg, 16, record.FPOffset)
		leaf.Arg = 6 // RBP
		require.True(t, whole(t, leaf, none))
		frames, _, outcome := apply(t, none, leaf) // which is not known of callers
		require.Equal(t, 2, frames)
		require.Equal(t, record.OutcomeNoRows.String(), outcome.String())
	})
	t.Run("plt", func(t *testing.T) {
		callers := rule(record.CFAPLT, frameBytes, record.FPOffset)
		callers.Arg = uint8(r.back&15) + 1
		require.True(t, whole(t, none, callers))
	})
	t.Run("plt_pushed", func(t *testing.T) {
		callers := rule(record.CFAPLT, frameBytes-8, record.FPOffset)
		callers.Arg = uint8(r.back & 15)
		require.True(t, whole(t, none, callers))
	})
	t.Run("in_memory", func(t *testing.T) { // where the callee has its caller's frame pointer
		callers := rule(record.CFADerefSP, -16, record.FPOffset)
		callers.Arg = 16
		require.True(t, whole(t, none, callers))
	})
	t.Run("in_memory_of_frame", func(t *testing.T) { // that of the frame after the next
		callers := rule(record.CFADerefFP, 0, record.FPOffset)
		callers.Arg = 16
		_, own, _ := apply(t, none, callers)
		require.InDelta(t, 2+(depth-1)/2, own, 1)
	})
	t.Run("aligned", func(t *testing.T) {
		callers := rule(record.CFAFP, 16, record.FPFrame)
		callers.FPOffset = 0
		require.True(t, whole(t, none, callers))
	})
	t.Run("interrupted", func(t *testing.T) { // the rule at the return address counts, not that of the call before it
		interrupted := byFP
		interrupted.RA = record.RAInterrupted
		var caller uint64
		r.use(t, r.table(t, base, 4, []record.UnwindRule{{}, interrupted, end}, []span{{r.descend, 1}, {call, 2}, {r.back, 1}, {r.descend + 512, 0}}))
		frames, own, _ := r.walk(t, func(frames []uint64) { caller = frames[1] })
		r.drop(t)
		require.Equal(t, r.own, own)
		require.Equal(t, r.frames, frames)
		require.Equal(t, r.back+1, caller, "like a return address")
	})
	// zero is where each frame of the function has a word that is 0, from the CFA.
	zero := 0
	for offset := -24; offset >= -128 && zero == 0; offset -= 8 {
		leaf := byFP
		leaf.RAOffset = int32(offset)
		if frames, _, outcome := apply(t, leaf, end); frames == 1 && outcome == record.OutcomePresent {
			zero = offset
		}
	}
	t.Run("no_caller", func(t *testing.T) { require.NotZero(t, zero, "where the return address is 0") })
	t.Run("no_caller_guessed", func(t *testing.T) { // of a frame that was found without the table of its callee
		last := byFP
		last.RAOffset = int32(zero)
		callers := r.table(t, base, 4, []record.UnwindRule{{}, last}, []span{{call, 1}, {r.back, 0}})
		for _, tc := range []struct {
			table record.TableID
			want  record.Outcome
		}{{callers.Table, record.OutcomePresent}, {callers.Table + 1000, record.OutcomeNoRows}} {
			before, at, behind := callers, callers, callers
			before.Limit, before.Table = call, tc.table
			at.Start, at.Limit = call, r.back
			behind.Start, behind.Table = r.back, tc.table
			r.use(t, before, at, behind)
			frames, _, outcome := r.walk(t, func([]uint64) {})
			require.Equal(t, 2, frames)
			require.Equal(t, tc.want.String(), outcome.String())
		}
		r.drop(t)
	})
	t.Run("no_caller_of_file", func(t *testing.T) { // where rows tell all, though the process has no list
		if !r.s.CanNameFiles() {
			return
		}
		f, err := os.Open(r.program)
		require.NoError(t, err)
		defer f.Close()
		file, err := r.s.NameFile(f)
		require.NoError(t, err)
		m, page := mappingOf(t, r.pid, r.descend), uint64(os.Getpagesize())
		last := byFP
		last.RAOffset = int32(zero)
		table := r.table(t, base, 4, []record.UnwindRule{{}, byFP, last}, []span{{r.descend, 1}, {call, 2}, {r.back, 1}, {r.descend + 512, 0}})
		require.NoError(t, r.s.SetFileRows(file, table.Table, []record.FileText{{
			FirstPage: uint32(m.Offset / page), LimitPage: uint32((m.Offset + m.Limit - m.Start + page - 1) / page), Text: int64(base - (m.Start - m.Offset)),
		}}))
		require.NoError(t, r.s.ForgetMappings(r.id))
		frames, _, outcome := r.walk(t, func([]uint64) {})
		require.Equal(t, 2, frames)
		require.Equal(t, record.OutcomePresent.String(), outcome.String())
		r.drop(t)
	})
	t.Run("switch", func(t *testing.T) { // a frame pointer of 0 is that of no stack, or was cleared
		leaf, callers := byFP, record.UnwindRule{CFA: record.CFASwitch}
		leaf.FPOffset = int32(zero)
		for arg, want := range []record.Outcome{record.OutcomePresent, record.OutcomeNoRows} {
			callers.Arg = uint8(arg)
			frames, _, outcome := apply(t, leaf, callers)
			require.Equal(t, 2, frames)
			require.Equal(t, want.String(), outcome.String())
		}
	})
	t.Run("switch_keeps", func(t *testing.T) { // and goes on by one that was not
		require.True(t, whole(t, byFP, record.UnwindRule{CFA: record.CFASwitch, Arg: 1}))
	})
}
