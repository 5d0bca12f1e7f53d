package labels

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

var names = NewKeyMap([]string{"zero", "one", "two", "one"})

func TestThreadContext(t *testing.T) {
	long := strings.Repeat("v", 255)
	for name, tc := range map[string]struct {
		attrs  []byte
		size   int
		want   []Label
		counts Counts
	}{
		"none":                {nil, 0, nil, Counts{}},
		"two":                 {join(attr(2, "b"), attr(0, "a")), 0, []Label{{"two", "b", 3}, {"zero", "a", 3}}, Counts{}},
		"empty value":         {attr(0, ""), 0, []Label{{"zero", "", 3}}, Counts{}},
		"longest value":       {attr(0, long), 0, []Label{{"zero", long, 3}}, Counts{}},
		"last wins":           {join(attr(0, "a"), attr(1, "b"), attr(0, "c")), 0, []Label{{"one", "b", 3}, {"zero", "c", 3}}, Counts{AnomalyDuplicateKey: 1}},
		"last wins by name":   {join(attr(3, "a"), attr(1, "b")), 0, []Label{{"one", "b", 3}}, Counts{AnomalyDuplicateKey: 1}},
		"last wins by name 2": {join(attr(1, "a"), attr(3, "b")), 0, []Label{{"one", "b", 3}}, Counts{AnomalyDuplicateKey: 1}},
		"unknown index":       {join(attr(4, "a"), attr(255, "b"), attr(2, "c")), 0, []Label{{"two", "c", 3}}, Counts{AnomalyUnknownKey: 2}},
		"incomplete header":   {join(attr(0, "a"), []byte{1}), 0, []Label{{"zero", "a", 3}}, Counts{}},
		"incomplete value":    {join(attr(0, "a"), []byte{0, 2, 'x'}), 0, []Label{{"zero", "a", 3}}, Counts{}},
		"size below copy":     {join(attr(0, "a"), attr(1, "b")), 3, []Label{{"zero", "a", 3}}, Counts{}},
		// From here on less was copied than the record holds.
		"cut value":                {join(attr(0, "a"), []byte{1, 5, 'x', 'y'}), 10, []Label{{"one", "xy", 3}, {"zero", "a", 3}}, Counts{AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		"cut value overrides":      {join(attr(0, "a"), []byte{0, 5, 'x', 'y'}), 10, []Label{{"zero", "xy", 3}}, Counts{AnomalyDuplicateKey: 1, AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		"cut value stays text":     {[]byte{1, 5, 'x', 0xc3}, 10, []Label{{"one", "x", 3}}, Counts{AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		"cut between entries":      {attr(0, "a"), 10, []Label{{"zero", "a", 3}}, Counts{AnomalyTruncatedSet: 1}},
		"cut behind index":         {join(attr(0, "a"), attr(2, "b"), []byte{0}), 10, []Label{{"two", "b", 3}}, Counts{AnomalyDuplicateKey: 1, AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		"cut behind index, name":   {join(attr(3, "a"), []byte{1}), 10, nil, Counts{AnomalyDuplicateKey: 1, AnomalyTruncatedValue: 1, AnomalyTruncatedSet: 1}},
		"cut behind unknown index": {join(attr(0, "a"), []byte{9}), 10, []Label{{"zero", "a", 3}}, Counts{AnomalyUnknownKey: 1, AnomalyTruncatedSet: 1}},
		"cut, and too long anyway": {join(attr(0, "a"), []byte{0, 200, 'x'}), 10, []Label{{"zero", "a", 3}}, Counts{AnomalyTruncatedSet: 1}},
		"cut at a lone last byte":  {join(attr(0, "a"), attr(1, "b")), 7, []Label{{"one", "b", 3}, {"zero", "a", 3}}, Counts{AnomalyTruncatedSet: 1}},
		"nothing copied":           {nil, 700, nil, Counts{AnomalyTruncatedSet: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decode(names, contextRecord{link: linkA, valid: 1, flags: 3, size: tc.size, attrs: tc.attrs}.block())
			require.Equal(t, tc.want, collected(d.Set))
			require.Equal(t, tc.counts, d.Counts)
			require.Equal(t, tc.counts[AnomalyTruncatedSet] > 0, d.Set.Truncated())
			require.Equal(t, linkA, d.Link, "the ids are whole in any case")
			require.Equal(t, byte(3), d.Flags)
			want := record.OutcomePresent
			if d.Set.Truncated() {
				want = record.OutcomeTruncated
			}
			require.Equal(t, []Read{{record.ABIThreadContext, want}}, d.Reads)
		})
	}
}

func TestThreadContextWithoutRoom(t *testing.T) {
	d := Decode(names, blockOf(record.ABIThreadContext, record.OutcomeTruncated, 100, 0, nil))
	require.Equal(t, []Read{{record.ABIThreadContext, record.OutcomeTruncated}}, d.Reads)
	require.True(t, d.Set.Truncated())
	require.True(t, d.Link.IsZero())
	require.Equal(t, Counts{AnomalyTruncatedSet: 1}, d.Counts)
}

func TestThreadContextValid(t *testing.T) {
	for valid, want := range map[byte]record.Outcome{0: record.OutcomeUpdating, 1: record.OutcomePresent, 2: record.OutcomeInvalid, 212: record.OutcomeInvalid, 255: record.OutcomeInvalid} {
		d := Decode(names, contextRecord{link: linkA, valid: valid, flags: 1, attrs: attr(9, "a")}.block())
		require.Equal(t, []Read{{record.ABIThreadContext, want}}, d.Reads)
		require.Equal(t, want != record.OutcomePresent, d.Link.IsZero())
		require.Equal(t, want != record.OutcomePresent, d.Counts == Counts{})
		require.Equal(t, want != record.OutcomePresent, d.Flags == 0)
	}
}

func TestThreadContextIDs(t *testing.T) {
	for name, tc := range map[string]struct {
		link   Link
		want   Link
		flags  byte
		counts Counts
	}{
		"both":          {linkA, linkA, 1, Counts{}},
		"neither":       {Link{}, Link{}, 0, Counts{}},
		"no span":       {Link{TraceID: linkA.TraceID}, Link{}, 0, Counts{AnomalyHalfID: 1}},
		"no trace":      {Link{SpanID: linkA.SpanID}, Link{}, 0, Counts{AnomalyHalfID: 1}},
		"last byte set": {Link{TraceID: [16]byte{15: 1}, SpanID: [8]byte{7: 1}}, Link{TraceID: [16]byte{15: 1}, SpanID: [8]byte{7: 1}}, 1, Counts{}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decode(names, contextRecord{link: tc.link, valid: 1, flags: 1, attrs: attr(0, "a")}.block())
			require.Equal(t, tc.want, d.Link)
			require.Equal(t, tc.flags, d.Flags)
			require.Equal(t, tc.counts, d.Counts)
			require.Equal(t, []Label{{"zero", "a", record.ABIThreadContext}}, collected(d.Set), "attributes do not depend on the ids")
		})
	}
}

func TestKeyMap(t *testing.T) {
	section := contextRecord{link: linkA, valid: 1, attrs: join(attr(0, "a"), attr(255, "b"))}.block()
	d := Decode(nil, section)
	require.Zero(t, d.Set.Len())
	require.Equal(t, Counts{AnomalyUnknownKey: 2}, d.Counts)
	require.Equal(t, linkA, d.Link, "ids need no names")

	many := make([]string, 300)
	for i := range many {
		many[i] = strings.Repeat("k", i)
	}
	keys := NewKeyMap(many)
	require.Equal(t, 256, keys.Len())
	many[255] = "changed later"
	d = Decode(keys, section)
	require.Equal(t, []Label{{strings.Repeat("k", 255), "b", record.ABIThreadContext}}, collected(d.Set))
	require.Equal(t, Counts{AnomalyUnknownKey: 1}, d.Counts, "an empty name is none")

	name, ok := keys.Name(255)
	require.True(t, ok)
	require.Len(t, name, 255)
	_, ok = names.Name(4)
	require.False(t, ok)
	_, ok = (*KeyMap)(nil).Name(0)
	require.False(t, ok)
	require.Zero(t, (*KeyMap)(nil).Len())
}

// A name is a key like those of other labels: its first 256 bytes are kept, and mark the set.
func TestLongNames(t *testing.T) {
	section := contextRecord{valid: 1, attrs: join(attr(0, "a"), attr(1, "b"))}.block()
	longest := strings.Repeat("k", record.MaxLabelKeyBytes)
	d := Decode(NewKeyMap([]string{longest, "whole"}), section)
	require.False(t, d.Set.Truncated())
	require.Equal(t, Counts{}, d.Counts)

	keys := NewKeyMap([]string{longest[1:] + "é" + longest, "whole"})
	d = Decode(keys, section)
	require.Equal(t, []Label{{longest[1:], "a", record.ABIThreadContext}, {"whole", "b", record.ABIThreadContext}}, collected(d.Set))
	require.True(t, d.Set.Truncated())
	require.Equal(t, Counts{AnomalyTruncatedKey: 1, AnomalyTruncatedSet: 1}, d.Counts)
	require.Equal(t, []Read{{record.ABIThreadContext, record.OutcomeTruncated}}, d.Reads)
	require.Less(t, keys.bytes, 2*(nameBytes+record.MaxLabelKeyBytes))

	d = Decode(NewKeyMap([]string{longest + "cut", longest}), section)
	require.Equal(t, []Label{{longest, "b", record.ABIThreadContext}}, collected(d.Set), "the other may be another key")
}

func TestMerge(t *testing.T) {
	context := func(link Link, value string) []byte {
		return contextRecord{link: link, valid: 1, flags: link.SpanID[0], attrs: attr(0, value)}.block()
	}
	for name, tc := range map[string]struct {
		section []byte
		want    []Label
		link    Link
		counts  Counts
	}{
		"context, v1, v0": {join(v0(kv("zero", "0"), kv("z", "0")), v1(kv("zero", "1"), kv("z", "1")), context(linkA, "c")),
			[]Label{{"z", "1", record.ABIV1}, {"zero", "c", record.ABIThreadContext}}, linkA, Counts{AnomalyConflict: 3}},
		"whatever the order": {join(context(linkA, "c"), v1(kv("zero", "1"), kv("z", "1")), v0(kv("zero", "0"), kv("z", "0"))),
			[]Label{{"z", "1", record.ABIV1}, {"zero", "c", record.ABIThreadContext}}, linkA, Counts{AnomalyConflict: 3}},
		"equal values are no conflict": {join(v0(kv("a", "1")), v1(kv("a", "1"))), []Label{{"a", "1", record.ABIV1}}, Link{}, Counts{}},
		"union":                        {join(v0(kv("a", "1")), v1(kv("b", "2"))), []Label{{"a", "1", record.ABIV0}, {"b", "2", record.ABIV1}}, Link{}, Counts{}},
		"same ABI, first block":        {join(v1(kv("a", "1")), v1(kv("a", "2"))), []Label{{"a", "1", record.ABIV1}}, Link{}, Counts{AnomalyConflict: 1}},
		"duplicates in the loser":      {join(v0(kv("a", "1"), kv("a", "2")), v1(kv("a", "3"), kv("a", "4"))), []Label{{"a", "3", record.ABIV1}}, Link{}, Counts{AnomalyDuplicateKey: 2, AnomalyConflict: 1}},
		"two links":                    {join(context(linkA, "c"), context(linkB, "c")), []Label{{"zero", "c", record.ABIThreadContext}}, linkA, Counts{AnomalyConflict: 1}},
		"one link twice":               {join(context(linkA, "c"), context(linkA, "c")), []Label{{"zero", "c", record.ABIThreadContext}}, linkA, Counts{}},
		"second has the link":          {join(context(Link{}, "c"), context(linkB, "d")), []Label{{"zero", "c", record.ABIThreadContext}}, linkB, Counts{AnomalyConflict: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decode(names, tc.section)
			require.Equal(t, tc.want, collected(d.Set))
			require.Equal(t, tc.link, d.Link)
			require.Equal(t, tc.link.SpanID[0], d.Flags)
			require.Equal(t, tc.counts, d.Counts)
		})
	}
}
