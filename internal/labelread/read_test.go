package labelread

import (
	"debug/elf"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// Where things are in the memory of the tests.
const (
	tp      = 0x10000
	slotAtT = 0x10100 // the variable
	setAt   = 0x20000
	slotsAt = 0x30000
	textAt  = 0x40000
)

func direct() tlsresolve.Location { return tlsresolve.Location{Offset: slotAtT - tp} }

// set is a memory with a v1 label set of the given slots.
func set(count uint64, slots ...slot) memory {
	m := memory{slotAtT: words(setAt), setAt: words(slotsAt, count, 99), textAt: []byte("keyvalue" + strings.Repeat("x", 4096))}
	for _, s := range slots {
		m[slotsAt] = append(m[slotsAt], words(s.keyLen, s.keyBuf, s.valueLen, s.valueBuf)...)
	}
	return m
}

func good() slot { return slot{3, textAt, 5, textAt + 3} }

func repeat(s slot, n int) []slot {
	var all []slot
	for range n {
		all = append(all, s)
	}
	return all
}

func TestOutcomes(t *testing.T) {
	const v0, v1, ctx = record.ABIV0, record.ABIV1, record.ABIThreadContext
	context := func(b []byte) memory { return memory{slotAtT: words(setAt), setAt: b} }
	for name, tc := range map[string]struct {
		mem  memory
		abi  record.ABI
		want record.Outcome
		n    int    // labels
		err  string // in what it says
	}{
		"null":                  {memory{slotAtT: words(0)}, v1, record.OutcomeNone, 0, ""},
		"no variable":           {memory{}, v1, record.OutcomeFault, 0, "the variable"},
		"no variable, v0":       {memory{}, v0, record.OutcomeFault, 0, "the label set"},
		"dangling set":          {memory{slotAtT: words(1)}, v1, record.OutcomeFault, 0, "the label set"},
		"half a set":            {memory{slotAtT: words(setAt), setAt: words(slotsAt)}, v1, record.OutcomeFault, 0, "the label set"},
		"count 0":               {set(0), v1, record.OutcomeNone, 0, ""},
		"inline":                {memory{slotAtT: words(slotsAt, 1), slotsAt: words(3, textAt, 5, textAt+3), textAt: []byte("keyvalue")}, v0, record.OutcomePresent, 1, ""},
		"one":                   {set(1, good()), v1, record.OutcomePresent, 1, ""},
		"hole":                  {set(2, slot{9, 0, 9, 1}, good()), v1, record.OutcomePresent, 1, ""},
		"holes only":            {set(2, slot{9, 0, 9, 1}, slot{}), v1, record.OutcomeNone, 0, ""},
		"value NULL":            {set(1, slot{3, textAt, 5, 0}), v1, record.OutcomeNone, 0, ""},
		"empty, from nowhere":   {set(1, slot{0, 1, 0, 1}), v1, record.OutcomePresent, 1, ""},
		"no storage":            {memory{slotAtT: words(setAt), setAt: words(0, 1, 1)}, v1, record.OutcomeInvalid, 0, "no storage"},
		"storage too short":     {set(2, good()), v1, record.OutcomeFault, 0, "the storage"},
		"key":                   {set(1, slot{3, 7, 5, textAt}), v1, record.OutcomeFault, 0, "a key"},
		"value":                 {set(1, slot{3, textAt, 5, 7}), v1, record.OutcomeFault, 0, "a value"},
		"second faults":         {set(2, good(), slot{3, 7, 5, textAt}), v1, record.OutcomeFault, 0, "a key"},
		"64 labels":             {set(64, repeat(good(), 64)...), v1, record.OutcomePresent, 64, ""},
		"65 labels":             {set(65, repeat(good(), 65)...), v1, record.OutcomeTruncated, 64, ""},
		"a hole behind 64":      {set(65, append(repeat(good(), 64), slot{})...), v1, record.OutcomePresent, 64, ""},
		"512 slots":             {set(512, append(repeat(slot{}, 511), good())...), v1, record.OutcomePresent, 1, ""},
		"513 slots":             {set(513, append(repeat(slot{}, 512), good())...), v1, record.OutcomeTruncated, 0, ""},
		"endless":               {set(math.MaxUint64, repeat(good(), 512)...), v1, record.OutcomeTruncated, 64, ""},
		"long key":              {set(1, slot{257, textAt, 5, textAt}), v1, record.OutcomeTruncated, 1, ""},
		"endless value":         {set(1, slot{3, textAt, math.MaxUint64, textAt}), v1, record.OutcomeTruncated, 1, ""},
		"full":                  {set(9, repeat(slot{3, textAt, 1024, textAt}, 9)...), v1, record.OutcomeTruncated, 7, ""},
		"context":               {context(contextRecord(1, 0, "")), ctx, record.OutcomePresent, 0, ""},
		"context, attributes":   {context(contextRecord(1, 4, "\x00\x02ab")), ctx, record.OutcomePresent, 1, ""},
		"context, updating":     {context(contextRecord(0, 4, "\x00\x02ab")), ctx, record.OutcomeUpdating, 0, ""},
		"context, garbage":      {context(contextRecord(212, 4, "\x00\x02ab")), ctx, record.OutcomeInvalid, 0, "212"},
		"context, half":         {context(contextRecord(1, 4, "")[:20]), ctx, record.OutcomeFault, 0, "record"},
		"context, past the end": {context(contextRecord(1, 5, "\x00\x02ab")), ctx, record.OutcomeFault, 0, "attributes"},
		"context, 2048":         {context(contextRecord(1, 2048, strings.Repeat("\x00\x0eabcdefghijklmn", 128))), ctx, record.OutcomePresent, 1, ""},
		"context, too long":     {context(contextRecord(1, 2064, strings.Repeat("\x00\x0eabcdefghijklmn", 129))), ctx, record.OutcomeTruncated, 1, ""},
		"no ABI":                {memory{slotAtT: words(setAt)}, record.ABINone, record.OutcomeInvalid, 0, "ABI"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(tc.mem, elf.EM_X86_64, Stopped{ThreadPointer: tp}, direct().Source(tc.abi))
			require.Equal(t, tc.want, r.Outcome)
			require.EqualValues(t, slotAtT, r.Addr)
			if tc.err == "" {
				require.NoError(t, r.Err)
			} else {
				require.ErrorContains(t, r.Err, tc.err)
			}
			requireBlock(t, tc.abi, r)
			raw := 0
			if tc.abi != ctx {
				for p := r.Block[record.LabelBlockBytes:]; len(p) >= record.RawLabelBytes; raw++ {
					p = p[record.RawLabelBytes+int(p[8])+int(p[9])<<8+int(p[10])+int(p[11])<<8:]
				}
				require.Equal(t, tc.n, raw)
				return
			}
			d := labels.Decode(labels.NewKeyMap([]string{"k"}), r.Block)
			require.Equal(t, tc.n, d.Set.Len())
		})
	}
}

// requireBlock checks that the decoder makes of a block what the reading says.
func requireBlock(t testing.TB, abi record.ABI, r Reading) {
	t.Helper()
	if n := len(r.Block); n > record.MaxLabelBytes || n%blockAlign != 0 {
		t.Fatalf("a block of %d bytes", n)
	}
	d := labels.Decode(nil, r.Block)
	if len(d.Reads) != 1 || d.Reads[0] != (labels.Read{ABI: abi, Outcome: r.Outcome}) {
		t.Fatalf("%v %v decodes as %v", abi, r.Outcome, d.Reads)
	}
	if d.Set.Truncated() != (r.Outcome == record.OutcomeTruncated) {
		t.Fatalf("%v and truncated %v", r.Outcome, d.Set.Truncated())
	}
}

func TestNoVariable(t *testing.T) {
	dtv := tlsresolve.Location{Kind: record.TLSDTVGlibc, Module: 2, Offset: 8, Generation: 3}
	table := func(slots, generation, block uint64) memory {
		return memory{tp: words(tp, 0x50010), 0x50000: words(slots, 0, generation, 0, 0, 0, block, 0), 0x60008: words(0)}
	}
	for name, tc := range map[string]struct {
		mem  memory
		tp   uint64
		at   tlsresolve.Location
		want record.Outcome
	}{
		"allocated":         {table(2, 3, 0x60000), tp, dtv, record.OutcomeNone},
		"no thread pointer": {memory{}, 0, dtv, record.OutcomeNoThreadPointer},
		"never touched":     {table(2, 3, 0), tp, dtv, record.OutcomeNotAllocated},
		"unallocated":       {table(2, 3, math.MaxUint64), tp, dtv, record.OutcomeNotAllocated},
		"short":             {table(1, 3, 0x60000), tp, dtv, record.OutcomeNotAllocated},
		"stale":             {table(2, 2, 0x60000), tp, dtv, record.OutcomeStaleModule},
		"no table":          {memory{tp: words(tp, 0)}, tp, dtv, record.OutcomeNotAllocated},
		"wild table":        {memory{tp: words(tp, 7)}, tp, dtv, record.OutcomeFault},
		"wild pointer":      {memory{}, tp, dtv, record.OutcomeFault},
		"module 0":          {table(2, 3, 0x60000), tp, tlsresolve.Location{Kind: record.TLSDTVGlibc}, record.OutcomeInvalid},
		"module 0, musl":    {table(2, 3, 0x60000), tp, tlsresolve.Location{Kind: record.TLSDTVMusl}, record.OutcomeInvalid},
		"no kind":           {memory{}, tp, tlsresolve.Location{Kind: 9, Module: 1}, record.OutcomeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(tc.mem, elf.EM_X86_64, Stopped{ThreadPointer: tc.tp}, tc.at.Source(record.ABIV1))
			require.Equal(t, tc.want, r.Outcome)
			requireBlock(t, record.ABIV1, r)
		})
	}
}

// What the heads of blocks and labels say about what was not copied.
func TestOriginalLengths(t *testing.T) {
	r := Read(set(3, slot{1 << 40, textAt, 2000, textAt}, slot{1, textAt, 1, 0}, slot{}), elf.EM_X86_64, Stopped{ThreadPointer: tp}, direct().Source(record.ABIV1))
	require.Equal(t, []byte{
		byte(record.ABIV1), byte(record.OutcomeTruncated), 0x0c, 0x05, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
		0xff, 0xff, 0xff, 0xff, 0xd0, 0x07, 0, 0, 0x00, 0x01, 0x00, 0x04,
	}, r.Block[:record.LabelBlockBytes+record.RawLabelBytes])
	require.EqualValues(t, setAt, r.Pointer)
}

func TestBoundsEqualTheHeader(t *testing.T) {
	goHeader, err := os.ReadFile("../bpf/src/go.bpf.h")
	require.NoError(t, err)
	for name, bound := range map[string]int{
		"GO_MAP_MAX_LOG_BUCKETS": maxMapLogBuckets, "GO_MAP_MAX_VISITS": maxMapVisits,
		"GO_MAP_MIN_TOP_HASH": mapMinTopHash, "GO_MAP_SAME_SIZE_GROW": mapSameSizeGrow,
	} {
		require.Regexp(t, `#define `+name+` `+strconv.Itoa(bound)+`\s`, string(goHeader))
	}
}
