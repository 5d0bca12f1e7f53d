package labels

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func promoted(t *testing.T, p *Promotion, keys *KeyMap, section []byte) *Decoded {
	ch := newTestRegistry(t, func(o *Options) { o.Promotion = *p }).NewChannel()
	return ch.Decode(of(alice), keys, section)
}

func TestPromote(t *testing.T) {
	promotion := Promotion{
		TraceID: []IDKey{{Key: "trace"}, {Key: "root", Decimal: true}},
		SpanID:  []IDKey{{Key: "span"}, {Key: "span id", Decimal: true}},
	}
	const traceHex, spanHex = "000102030405060708090a0b0c0d0e0f", "1011121314151617"
	full := Link{
		TraceID: [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		SpanID:  [8]byte{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17},
	}
	decimal := Link{TraceID: [16]byte{8: 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, SpanID: [8]byte{6: 1, 7: 0}}
	for name, c := range map[string]struct {
		labels [][2]string
		link   Link
		left   int
		counts Counts
	}{
		"hex":              {[][2]string{{"trace", traceHex}, {"span", spanHex}, {"x", "y"}}, full, 1, Counts{}},
		"decimal":          {[][2]string{{"root", "18446744073709551615"}, {"span id", "256"}}, decimal, 0, Counts{}},
		"first key counts": {[][2]string{{"root", "7"}, {"trace", traceHex}, {"span", spanHex}}, full, 1, Counts{}},
		"span only":        {[][2]string{{"span id", "7"}}, Link{}, 1, Counts{}},
		"trace only":       {[][2]string{{"trace", traceHex}}, Link{}, 1, Counts{}},
		"upper case":       {[][2]string{{"trace", "000102030405060708090A0B0C0D0E0F"}, {"span", spanHex}}, full, 0, Counts{}},
		"short":            {[][2]string{{"trace", traceHex[2:]}, {"span", spanHex}}, Link{}, 1, Counts{AnomalyMalformedID: 1}},
		"not hex":          {[][2]string{{"trace", "x" + traceHex[1:]}, {"span", spanHex}}, Link{}, 1, Counts{AnomalyMalformedID: 1}},
		"zero":             {[][2]string{{"trace", traceHex}, {"span", "0000000000000000"}}, Link{}, 1, Counts{AnomalyMalformedID: 1}},
		"zero decimal":     {[][2]string{{"trace", traceHex}, {"span id", "0"}}, Link{}, 1, Counts{AnomalyMalformedID: 1}},
		"too large":        {[][2]string{{"trace", traceHex}, {"span id", "18446744073709551616"}}, Link{}, 1, Counts{AnomalyMalformedID: 1}},
		"negative":         {[][2]string{{"trace", traceHex}, {"span id", "-1"}}, Link{}, 1, Counts{AnomalyMalformedID: 1}},
		"half written":     {[][2]string{{"trace", traceHex}, {"span id", "123\x00456"}}, Link{}, 1, Counts{AnomalyMalformedID: 1}},
		"both malformed":   {[][2]string{{"trace", "?"}, {"span id", "?"}, {"x", "y"}}, Link{}, 1, Counts{AnomalyMalformedID: 1}},
		"empty":            {[][2]string{{"trace", traceHex}, {"span id", ""}}, Link{}, 1, Counts{AnomalyMalformedID: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var labels []raw
			for _, l := range c.labels {
				labels = append(labels, kv(l[0], l[1]))
			}
			section := v1(labels...)
			d := promoted(t, &promotion, nil, section)
			require.Equal(t, c.link, d.Link)
			require.Equal(t, c.left, d.Set.Len())
			require.Equal(t, c.counts, d.Counts)
			require.Equal(t, len(c.labels), Decode(nil, section).Set.Len(), "nothing without being asked")
		})
	}
}

// Ids of two sources may be of two traces.
func TestPromoteOfTwoSources(t *testing.T) {
	promotion := Promotion{
		TraceID: []IDKey{{Key: "trace", Decimal: true}, {Key: "root", Decimal: true}},
		SpanID:  []IDKey{{Key: "span", Decimal: true}, {Key: "span id", Decimal: true}},
	}
	link := func(trace, span byte) Link { return Link{TraceID: [16]byte{15: trace}, SpanID: [8]byte{7: span}} }
	ofGo := func(labels ...raw) []byte { return custom(record.ABIGo, record.OutcomePresent, labels...) }
	for name, c := range map[string]struct {
		section []byte
		link    Link
		left    int
		counts  Counts
	}{
		"half a pair":      {join(v1(kv("trace", "1")), ofGo(kv("span", "2"))), Link{}, 2, Counts{}},
		"a whole one, too": {join(v1(kv("trace", "1")), ofGo(kv("root", "3"), kv("span id", "4"))), link(3, 4), 1, Counts{}},
		"two whole ones":   {join(v1(kv("trace", "1"), kv("span id", "2")), ofGo(kv("root", "3"), kv("span", "4"))), link(1, 2), 2, Counts{}},
		"one id in both":   {join(v1(kv("trace", "1")), ofGo(kv("trace", "1"), kv("span", "4"))), link(1, 4), 0, Counts{}},
		"one key in both":  {join(v1(kv("trace", "1")), ofGo(kv("trace", "3"), kv("span", "4"))), Link{}, 2, Counts{AnomalyConflict: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			d := promoted(t, &promotion, nil, c.section)
			require.Equal(t, c.link, d.Link)
			require.Equal(t, c.left, d.Set.Len())
			require.Equal(t, c.counts, d.Counts)
		})
	}
}

// A cut value may look like another id.
func TestPromoteCutValue(t *testing.T) {
	promotion := Promotion{TraceID: []IDKey{{Key: "t", Decimal: true}}, SpanID: []IDKey{{Key: "s", Decimal: true}}}
	d := promoted(t, &promotion, nil, custom(record.ABIV1, record.OutcomeTruncated, kv("t", "7"), raw{key: "s", value: "12", valueLen: 5}))
	require.True(t, d.Link.IsZero())
	require.Equal(t, 1, d.Set.Len())
	require.EqualValues(t, 1, d.Counts[AnomalyMalformedID])
}

// The ids of a thread context are the link, whatever labels say.
func TestPromoteBesideThreadContext(t *testing.T) {
	promotion := Promotion{TraceID: []IDKey{{Key: "t", Decimal: true}}, SpanID: []IDKey{{Key: "s", Decimal: true}}}
	d := promoted(t, &promotion, nil, join(v1(kv("t", "7"), kv("s", "8")), contextRecord{link: linkA, valid: 1}.block()))
	require.Equal(t, linkA, d.Link)
	require.Equal(t, 2, d.Set.Len())
	require.EqualValues(t, 1, d.Counts[AnomalyConflict])
}

// An attribute of a thread context is no label, whatever its name.
func TestPromoteNoAttribute(t *testing.T) {
	promotion := Promotion{TraceID: []IDKey{{Key: "zero", Decimal: true}}, SpanID: []IDKey{{Key: "one", Decimal: true}}}
	d := promoted(t, &promotion, names, contextRecord{valid: 1, attrs: join(attr(0, "7"), attr(1, "8"))}.block())
	require.True(t, d.Link.IsZero())
	require.Equal(t, 2, d.Set.Len())
	require.Zero(t, d.Counts)
}
