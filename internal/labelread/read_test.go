package labelread

import (
	"debug/elf"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
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
	const v0, v1, ctx = labels.ABIV0, labels.ABIV1, labels.ABIThreadContext
	context := func(b []byte) memory { return memory{slotAtT: words(setAt), setAt: b} }
	for name, tc := range map[string]struct {
		mem  memory
		abi  labels.ABI
		want labels.Outcome
		n    int    // labels
		err  string // in what it says
	}{
		"null":                  {memory{slotAtT: words(0)}, v1, labels.OutcomeNone, 0, ""},
		"no variable":           {memory{}, v1, labels.OutcomeFault, 0, "the variable"},
		"no variable, v0":       {memory{}, v0, labels.OutcomeFault, 0, "the label set"},
		"dangling set":          {memory{slotAtT: words(1)}, v1, labels.OutcomeFault, 0, "the label set"},
		"half a set":            {memory{slotAtT: words(setAt), setAt: words(slotsAt)}, v1, labels.OutcomeFault, 0, "the label set"},
		"count 0":               {set(0), v1, labels.OutcomeNone, 0, ""},
		"inline":                {memory{slotAtT: words(slotsAt, 1), slotsAt: words(3, textAt, 5, textAt+3), textAt: []byte("keyvalue")}, v0, labels.OutcomePresent, 1, ""},
		"one":                   {set(1, good()), v1, labels.OutcomePresent, 1, ""},
		"hole":                  {set(2, slot{9, 0, 9, 1}, good()), v1, labels.OutcomePresent, 1, ""},
		"holes only":            {set(2, slot{9, 0, 9, 1}, slot{}), v1, labels.OutcomeNone, 0, ""},
		"value NULL":            {set(1, slot{3, textAt, 5, 0}), v1, labels.OutcomeNone, 0, ""},
		"empty, from nowhere":   {set(1, slot{0, 1, 0, 1}), v1, labels.OutcomePresent, 1, ""},
		"no storage":            {memory{slotAtT: words(setAt), setAt: words(0, 1, 1)}, v1, labels.OutcomeInvalid, 0, "no storage"},
		"storage too short":     {set(2, good()), v1, labels.OutcomeFault, 0, "the storage"},
		"key":                   {set(1, slot{3, 7, 5, textAt}), v1, labels.OutcomeFault, 0, "a key"},
		"value":                 {set(1, slot{3, textAt, 5, 7}), v1, labels.OutcomeFault, 0, "a value"},
		"second faults":         {set(2, good(), slot{3, 7, 5, textAt}), v1, labels.OutcomeFault, 0, "a key"},
		"64 labels":             {set(64, repeat(good(), 64)...), v1, labels.OutcomePresent, 64, ""},
		"65 labels":             {set(65, repeat(good(), 65)...), v1, labels.OutcomeTruncated, 64, ""},
		"a hole behind 64":      {set(65, append(repeat(good(), 64), slot{})...), v1, labels.OutcomePresent, 64, ""},
		"512 slots":             {set(512, append(repeat(slot{}, 511), good())...), v1, labels.OutcomePresent, 1, ""},
		"513 slots":             {set(513, append(repeat(slot{}, 512), good())...), v1, labels.OutcomeTruncated, 0, ""},
		"endless":               {set(math.MaxUint64, repeat(good(), 512)...), v1, labels.OutcomeTruncated, 64, ""},
		"long key":              {set(1, slot{257, textAt, 5, textAt}), v1, labels.OutcomeTruncated, 1, ""},
		"endless value":         {set(1, slot{3, textAt, math.MaxUint64, textAt}), v1, labels.OutcomeTruncated, 1, ""},
		"full":                  {set(9, repeat(slot{3, textAt, 1024, textAt}, 9)...), v1, labels.OutcomeTruncated, 7, ""},
		"context":               {context(record(1, 0, "")), ctx, labels.OutcomePresent, 0, ""},
		"context, attributes":   {context(record(1, 4, "\x00\x02ab")), ctx, labels.OutcomePresent, 1, ""},
		"context, updating":     {context(record(0, 4, "\x00\x02ab")), ctx, labels.OutcomeUpdating, 0, ""},
		"context, garbage":      {context(record(212, 4, "\x00\x02ab")), ctx, labels.OutcomeInvalid, 0, "212"},
		"context, half":         {context(record(1, 4, "")[:20]), ctx, labels.OutcomeFault, 0, "record"},
		"context, past the end": {context(record(1, 5, "\x00\x02ab")), ctx, labels.OutcomeFault, 0, "attributes"},
		"context, 2048":         {context(record(1, 2048, strings.Repeat("\x00\x0eabcdefghijklmn", 128))), ctx, labels.OutcomePresent, 1, ""},
		"context, too long":     {context(record(1, 2064, strings.Repeat("\x00\x0eabcdefghijklmn", 129))), ctx, labels.OutcomeTruncated, 1, ""},
		"no ABI":                {memory{slotAtT: words(setAt)}, labels.ABINone, labels.OutcomeInvalid, 0, "ABI"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(tc.mem, elf.EM_X86_64, Stopped{ThreadPointer: tp}, Source{ABI: tc.abi, At: direct()})
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
				for p := r.Block[blockBytes:]; len(p) >= rawLabelBytes; raw++ {
					p = p[rawLabelBytes+int(p[8])+int(p[9])<<8+int(p[10])+int(p[11])<<8:]
				}
				require.Equal(t, tc.n, raw)
				return
			}
			d := labels.NewCache(1<<20).Decode(labels.NewKeyMap([]string{"k"}), r.Block)
			require.Equal(t, tc.n, d.Set.Len())
		})
	}
}

// requireBlock checks that the decoder makes of a block what the reading says.
func requireBlock(t testing.TB, abi labels.ABI, r Reading) {
	t.Helper()
	if n := len(r.Block); n > maxSectionBytes || n%blockAlign != 0 {
		t.Fatalf("a block of %d bytes", n)
	}
	d := labels.NewCache(1<<20).Decode(nil, r.Block)
	if len(d.Reads) != 1 || d.Reads[0] != (labels.Read{ABI: abi, Outcome: r.Outcome}) {
		t.Fatalf("%v %v decodes as %v", abi, r.Outcome, d.Reads)
	}
	if d.Set.Truncated() != (r.Outcome == labels.OutcomeTruncated) {
		t.Fatalf("%v and truncated %v", r.Outcome, d.Set.Truncated())
	}
}

func TestNoVariable(t *testing.T) {
	dtv := tlsresolve.Location{Kind: tlsresolve.DTVGlibc, Module: 2, Offset: 8, Generation: 3}
	table := func(slots, generation, block uint64) memory {
		return memory{tp: words(tp, 0x50010), 0x50000: words(slots, 0, generation, 0, 0, 0, block, 0), 0x60008: words(0)}
	}
	for name, tc := range map[string]struct {
		mem  memory
		tp   uint64
		at   tlsresolve.Location
		want labels.Outcome
	}{
		"allocated":         {table(2, 3, 0x60000), tp, dtv, labels.OutcomeNone},
		"no thread pointer": {memory{}, 0, dtv, labels.OutcomeNoThreadPointer},
		"never touched":     {table(2, 3, 0), tp, dtv, labels.OutcomeNotAllocated},
		"unallocated":       {table(2, 3, math.MaxUint64), tp, dtv, labels.OutcomeNotAllocated},
		"short":             {table(1, 3, 0x60000), tp, dtv, labels.OutcomeNotAllocated},
		"stale":             {table(2, 2, 0x60000), tp, dtv, labels.OutcomeStaleModule},
		"no table":          {memory{tp: words(tp, 0)}, tp, dtv, labels.OutcomeNotAllocated},
		"wild table":        {memory{tp: words(tp, 7)}, tp, dtv, labels.OutcomeFault},
		"wild pointer":      {memory{}, tp, dtv, labels.OutcomeFault},
		"module 0":          {table(2, 3, 0x60000), tp, tlsresolve.Location{Kind: tlsresolve.DTVGlibc}, labels.OutcomeInvalid},
		"module 0, musl":    {table(2, 3, 0x60000), tp, tlsresolve.Location{Kind: tlsresolve.DTVMusl}, labels.OutcomeInvalid},
		"no kind":           {memory{}, tp, tlsresolve.Location{Kind: 9, Module: 1}, labels.OutcomeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(tc.mem, elf.EM_X86_64, Stopped{ThreadPointer: tc.tp}, Source{ABI: labels.ABIV1, At: tc.at})
			require.Equal(t, tc.want, r.Outcome)
			requireBlock(t, labels.ABIV1, r)
		})
	}
}

// What the heads of blocks and labels say about what was not copied.
func TestOriginalLengths(t *testing.T) {
	r := Read(set(3, slot{1 << 40, textAt, 2000, textAt}, slot{1, textAt, 1, 0}, slot{}), elf.EM_X86_64, Stopped{ThreadPointer: tp}, Source{ABI: labels.ABIV1, At: direct()})
	require.Equal(t, []byte{
		byte(labels.ABIV1), byte(labels.OutcomeTruncated), 0x0c, 0x05, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
		0xff, 0xff, 0xff, 0xff, 0xd0, 0x07, 0, 0, 0x00, 0x01, 0x00, 0x04,
	}, r.Block[:blockBytes+rawLabelBytes])
	require.EqualValues(t, setAt, r.Pointer)
}

func TestBoundsEqualTheHeader(t *testing.T) {
	header, err := os.ReadFile("../bpf/src/record.h")
	require.NoError(t, err)
	for name, bound := range map[string]int{
		"MAX_LABELS": maxLabels, "MAX_LABEL_SLOTS": maxSlots, "MAX_LABEL_KEY_BYTES": maxKeyBytes,
		"MAX_LABEL_VALUE_BYTES": maxValueBytes, "MAX_CONTEXT_ATTRS_BYTES": maxAttrsBytes, "MAX_LABEL_BYTES": maxSectionBytes,
	} {
		m := regexp.MustCompile(`#define ` + name + `\s+(\d+)`).FindSubmatch(header)
		require.NotNil(t, m, name)
		require.Equal(t, strconv.Itoa(bound), string(m[1]), name)
	}
	goHeader, err := os.ReadFile("../bpf/src/go.bpf.h")
	require.NoError(t, err)
	for name, bound := range map[string]int{
		"GO_MAP_MAX_LOG_BUCKETS": maxMapLogBuckets, "GO_MAP_MAX_VISITS": maxMapVisits,
		"GO_MAP_MIN_TOP_HASH": mapMinTopHash, "GO_MAP_SAME_SIZE_GROW": mapSameSizeGrow,
	} {
		require.Regexp(t, `#define `+name+` `+strconv.Itoa(bound)+`\s`, string(goHeader))
	}
	for name, size := range map[string]int{"label_block": blockBytes, "raw_label": rawLabelBytes} {
		require.Contains(t, string(header), "_Static_assert(sizeof(struct "+name+") == "+strconv.Itoa(size)+",")
	}
}
