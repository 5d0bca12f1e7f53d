package labels

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func collected(s *Set) []Label { return slices.Collect(s.All()) }

func TestEmptySection(t *testing.T) {
	for _, section := range [][]byte{nil, {}} {
		d := Decode(nil, section)
		require.Zero(t, d.Set.Len())
		require.False(t, d.Set.Truncated())
		require.True(t, d.Link.IsZero())
		require.Empty(t, d.Reads)
		require.Zero(t, d.Counts)
	}
	none := custom(record.ABIV1, record.OutcomeNone)
	setOf := channelSets(t)
	require.Same(t, setOf(nil), setOf(none), "no labels is one set, whatever the reason")
	require.Equal(t, []Read{{record.ABIV1, record.OutcomeNone}}, Decode(nil, none).Reads)
}

func TestCustomLabels(t *testing.T) {
	long := strings.Repeat("x", 1024)
	for name, tc := range map[string]struct {
		section []byte
		want    []Label
		counts  Counts
	}{
		"v0":            {v0(kv("b", "2"), kv("a", "1")), []Label{{"a", "1", record.ABIV0}, {"b", "2", record.ABIV0}}, Counts{}},
		"v1":            {v1(kv("b", "2"), kv("a", "1")), []Label{{"a", "1", record.ABIV1}, {"b", "2", record.ABIV1}}, Counts{}},
		"first wins":    {v1(kv("a", "1"), kv("b", "2"), kv("a", "3"), kv("a", "1")), []Label{{"a", "1", record.ABIV1}, {"b", "2", record.ABIV1}}, Counts{AnomalyDuplicateKey: 2}},
		"empty value":   {v1(kv("a", "")), []Label{{"a", "", record.ABIV1}}, Counts{}},
		"empty key":     {v1(kv("", "v")), []Label{{"", "v", record.ABIV1}}, Counts{}},
		"both empty":    {v1(kv("", "")), []Label{{"", "", record.ABIV1}}, Counts{}},
		"embedded NUL":  {v1(kv("a\x00b", "\x00"), kv("a", "c")), []Label{{"a", "c", record.ABIV1}, {"a\x00b", "\x00", record.ABIV1}}, Counts{}},
		"no UTF-8":      {v1(kv("\xff\xfe", "\x80")), []Label{{"\xff\xfe", "\x80", record.ABIV1}}, Counts{}},
		"writer's cut":  {v1(kv("a", "caf\xc3")), []Label{{"a", "caf\xc3", record.ABIV1}}, Counts{}},
		"largest value": {v1(kv("a", long)), []Label{{"a", long, record.ABIV1}}, Counts{}},
		"no live label": {v1(), nil, Counts{}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decode(nil, tc.section)
			require.Equal(t, tc.want, collected(d.Set))
			require.Equal(t, tc.counts, d.Counts)
			require.False(t, d.Set.Truncated())
			require.Equal(t, record.OutcomePresent, d.Reads[0].Outcome)
		})
	}
}

func TestCustomLabelsKeyAndValueDoNotRunTogether(t *testing.T) {
	setOf := channelSets(t)
	first := setOf(v1(kv("ab", "c")))
	require.NotSame(t, first, setOf(v1(kv("a", "bc"))))
	require.NotSame(t, setOf(v1(kv("a", "1"), kv("b", "2"))), setOf(v1(kv("a", "1\x02\x01\x01b2"))))
	require.NotSame(t, setOf(v1(kv("a", "b"), kv("c", "d"))), setOf(v1(kv("ab\x02\x01c", "d"))))
	require.NotSame(t, setOf(v1(kv("a", "bc"), kv("d", ""))), setOf(v1(kv("a", "bc\x02\x01\x00d"))))
}

func TestNullValuesAreCounted(t *testing.T) {
	payload := kv("a", "1").append(nil)
	d := Decode(nil, join(
		blockOf(record.ABIV1, record.OutcomePresent, 3, 2, payload),
		blockOf(record.ABIV0, record.OutcomePresent, 1, 1<<32-1, nil),
		blockOf(record.ABIV0, record.OutcomeFault, 1, 7, nil)))
	require.Equal(t, Counts{AnomalyNullValue: 1<<32 - 1}, d.Counts, "saturates; a fault has no trusted count")
	require.Equal(t, 1, d.Set.Len())
	require.Equal(t, Counts{AnomalyNullValue: 2}, Decode(nil, blockOf(record.ABIV1, record.OutcomePresent, 3, 2, payload)).Counts)
	require.Equal(t, Counts{AnomalyNullValue: 2}, Decode(nil, blockOf(record.ABIV1, record.OutcomeNone, 2, 2, nil)).Counts, "nothing but NULLs")
}

func TestTruncation(t *testing.T) {
	for name, tc := range map[string]struct {
		section []byte
		want    []Label
		counts  Counts
	}{
		"count":         {custom(record.ABIV1, record.OutcomeTruncated, kv("a", "1")), []Label{{"a", "1", record.ABIV1}}, Counts{AnomalyTruncatedSet: 1}},
		"value":         {v1(raw{"a", "12", 1, 3}), []Label{{"a", "12", record.ABIV1}}, Counts{AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		"value huge":    {v1(raw{"a", "12", 1, 1<<32 - 1}), []Label{{"a", "12", record.ABIV1}}, Counts{AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		"key":           {v0(raw{"ab", "1", 3, 1}), []Label{{"ab", "1", record.ABIV0}}, Counts{AnomalyTruncatedKey: 1, AnomalyTruncatedSet: 1}},
		"nothing left":  {v1(raw{"", "", 9, 9}), []Label{{"", "", record.ABIV1}}, Counts{AnomalyTruncatedKey: 1, AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		"stays text":    {v1(raw{"k\xe2\x82", "caf\xc3", 5, 5}), []Label{{"k", "caf", record.ABIV1}}, Counts{AnomalyTruncatedKey: 1, AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		"4 byte rune":   {v1(raw{"a", "x\xf0\x9f\x98", 1, 9}), []Label{{"a", "x", record.ABIV1}}, Counts{AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		"whole rune":    {v1(raw{"a", "caf\xc3\xa9", 1, 6}), []Label{{"a", "café", record.ABIV1}}, Counts{AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		"bytes as they": {v1(raw{"a", "\x80\x80\x80\x80", 1, 6}), []Label{{"a", "\x80\x80\x80\x80", record.ABIV1}}, Counts{AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		// Two keys with one prefix: the whole one keeps its value.
		"key of another name": {v1(raw{"ab", "cut", 3, 3}, kv("ab", "whole")), []Label{{"ab", "whole", record.ABIV1}}, Counts{AnomalyTruncatedKey: 1, AnomalyTruncatedSet: 1}},
		"cut thread wins not": {join(v0(kv("ab", "whole")), v1(raw{"ab", "cut", 3, 3})), []Label{{"ab", "whole", record.ABIV0}}, Counts{AnomalyTruncatedKey: 1, AnomalyTruncatedSet: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decode(nil, tc.section)
			require.Equal(t, tc.want, collected(d.Set))
			require.Equal(t, tc.counts, d.Counts)
			require.True(t, d.Set.Truncated())
			require.Contains(t, d.Reads, Read{d.Reads[len(d.Reads)-1].ABI, record.OutcomeTruncated})
		})
	}
}

func TestTruncatedIsAnotherSet(t *testing.T) {
	setOf := channelSets(t)
	require.NotSame(t, setOf(v1(kv("a", "1"))), setOf(v1(raw{"a", "1", 1, 2})))
	require.NotSame(t, setOf(nil), setOf(custom(record.ABIV1, record.OutcomeTruncated)))
}

func TestUntrustedOutcomesCarryNoLabels(t *testing.T) {
	for o := range record.Outcome(record.NumOutcomes + 2) {
		if trusted(o) {
			continue
		}
		want := o
		if o >= record.NumOutcomes {
			want = record.OutcomeInvalid
		}
		for abi := record.ABIV0; abi < record.NumABIs; abi++ {
			section := custom(abi, o, kv("a", "0123456789012345678901234567890"))
			d := Decode(nil, join(section, v0(kv("b", "2"))))
			require.Equal(t, []Read{{abi, want}, {record.ABIV0, record.OutcomePresent}}, d.Reads)
			require.Equal(t, []Label{{"b", "2", record.ABIV0}}, collected(d.Set))
			require.Zero(t, d.Counts)
		}
	}
}

func TestMalformedBlocks(t *testing.T) {
	good := v1(kv("a", "1"))
	bad := func(label raw, change func([]byte) []byte) []byte {
		return blockOf(record.ABIV1, record.OutcomePresent, 1, 5, change(join(kv("k", "v").append(nil), label.append(nil))))
	}
	second := record.RawLabelBytes + 2
	for name, section := range map[string][]byte{
		"label header cut":         bad(kv("x", "y"), func(b []byte) []byte { return b[:second+record.RawLabelBytes-1] }),
		"key beyond payload":       bad(kv("x", "y"), func(b []byte) []byte { return b[:second+record.RawLabelBytes] }),
		"value beyond payload":     bad(kv("x", "y"), func(b []byte) []byte { return b[:len(b)-1] }),
		"more key than published":  bad(kv("x", "y"), func(b []byte) []byte { b[second] = 0; return b }),
		"more value than publ.":    bad(kv("x", "y"), func(b []byte) []byte { b[second+4] = 0; return b }),
		"no ABI":                   custom(record.ABINone, record.OutcomePresent, kv("x", "y")),
		"unknown ABI":              custom(record.NumABIs, record.OutcomePresent, kv("x", "y")),
		"thread context too short": blockOf(record.ABIThreadContext, record.OutcomePresent, 0, 0, make([]byte, contextAttrs-1)),
	} {
		t.Run(name, func(t *testing.T) {
			d := Decode(nil, join(section, good))
			require.Equal(t, record.OutcomeInvalid, d.Reads[0].Outcome)
			require.Equal(t, record.ABI(section[0]), d.Reads[0].ABI)
			require.Equal(t, Read{record.ABIV1, record.OutcomePresent}, d.Reads[1], "the next block is untouched")
			require.Equal(t, []Label{{"a", "1", record.ABIV1}}, collected(d.Set))
			require.Zero(t, d.Counts)
			require.Equal(t, record.ABI(section[0]) >= record.ABIV1, d.Set.Truncated(), "what goes before may override the other")
		})
	}
}

func TestMalformedFraming(t *testing.T) {
	good := v0(kv("a", "1"))
	short := v1(kv("key", "value"))
	for name, tc := range map[string]struct {
		tail []byte
		read Read
	}{
		"half a header":       {short[:record.LabelBlockBytes-1], Read{record.ABINone, record.OutcomeInvalid}},
		"payload not all":     {short[:record.LabelBlockBytes+3], Read{record.ABIV1, record.OutcomeInvalid}},
		"payload not at all":  {short[:record.LabelBlockBytes], Read{record.ABIV1, record.OutcomeInvalid}},
		"untrusted, too long": {blockOf(record.ABIV1, record.OutcomeFault, 0, 0, make([]byte, 9))[:record.LabelBlockBytes+8], Read{record.ABIV1, record.OutcomeInvalid}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decode(nil, join(good, tc.tail))
			require.Equal(t, []Read{{record.ABIV0, record.OutcomePresent}, tc.read}, d.Reads)
			require.Equal(t, []Label{{"a", "1", record.ABIV0}}, collected(d.Set))
		})
	}
	unpadded := short[:record.LabelBlockBytes+record.RawLabelBytes+len("keyvalue")]
	require.Equal(t, 1, Decode(nil, unpadded).Set.Len(), "the last block's padding is not needed")
}
