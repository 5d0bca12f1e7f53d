package profile

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func v1(key, value string) labels.Label {
	return labels.Label{Key: key, Value: value, Source: record.ABIV1}
}

func context(key, value string) labels.Label {
	return labels.Label{Key: key, Value: value, Source: record.ABIThreadContext}
}

func TestLabelAttributes(t *testing.T) {
	const standard = "process.context.label."
	for name, tc := range map[string]struct {
		prefix string
		set    *labels.Set
		want   map[string]any
		stats  BuildStats
	}{
		"prefix":                 {"p.", labels.NewSet(false, v1("a", "1")), map[string]any{"p.a": "1"}, BuildStats{}},
		"v0, too":                {"p.", labels.NewSet(false, labels.Label{Key: "a", Value: "1", Source: record.ABIV0}), map[string]any{"p.a": "1"}, BuildStats{}},
		"no prefix":              {"", labels.NewSet(false, v1("a", "1")), map[string]any{"a": "1"}, BuildStats{}},
		"thread context is bare": {"p.", labels.NewSet(false, context("http.route", "/")), map[string]any{"http.route": "/"}, BuildStats{}},
		"empty value":            {"p.", labels.NewSet(false, v1("a", "")), map[string]any{"p.a": ""}, BuildStats{}},
		"empty key":              {"p.", labels.NewSet(false, v1("", "1")), map[string]any{"p.": "1"}, BuildStats{}},
		"empty key, no prefix":   {"", labels.NewSet(false, v1("", "1")), map[string]any{"custom_labels.empty_key": "1"}, BuildStats{}},
		"empty attribute name":   {"p.", labels.NewSet(false, context("", "1")), map[string]any{"custom_labels.empty_key": "1"}, BuildStats{}},
		"the empty key's name": {"", labels.NewSet(false, v1("", "1"), v1("custom_labels.empty_key", "2")),
			map[string]any{"custom_labels.empty_key": "1", standard + "custom_labels.empty_key": "2"}, BuildStats{RenamedKeys: 3}},
		"binary value":   {"p.", labels.NewSet(false, v1("a", "1\xff"), v1("b", "\x00")), map[string]any{"p.a": []byte("1\xff"), "p.b": "\x00"}, BuildStats{}},
		"binary key":     {"p.", labels.NewSet(false, v1("a\xff\xc3b", "1")), map[string]any{`p.a\xff\xc3b`: "1"}, BuildStats{EscapedKeys: 3}},
		"both keys stay": {"p.", labels.NewSet(false, v1("\xff", "1"), v1(`\xff`, "2")), map[string]any{`p.\xff`: "1", `p.\x5cxff`: "2"}, BuildStats{EscapedKeys: 6}},
		"ours, not emitted": {"", labels.NewSet(false, v1("thread.id", "1"), v1("thread.name", "2"), v1("cpu.logical_number", "3")),
			map[string]any{standard + "thread.id": "1", standard + "thread.name": "2", standard + "cpu.logical_number": "3"}, BuildStats{RenamedKeys: 9}},
		"ours by prefix":   {"trace", labels.NewSet(false, v1("_id", "1")), map[string]any{standard + "_id": "1"}, BuildStats{RenamedKeys: 3}},
		"ours of contexts": {"p.", labels.NewSet(false, context("trace_id", "1"), context("span_id", "2")), map[string]any{standard + "trace_id": "1", standard + "span_id": "2"}, BuildStats{RenamedKeys: 6}},
		"ours by mark": {"", labels.NewSet(false, v1("custom_labels.truncated", "1"), v1("custom_labels.stack_truncated", "2")),
			map[string]any{standard + "custom_labels.truncated": "1", standard + "custom_labels.stack_truncated": "2"}, BuildStats{RenamedKeys: 6}},
		"one name, context wins": {"p.", labels.NewSet(false, v1("a", "1"), context("p.a", "2")), map[string]any{"p.a": "2"}, BuildStats{DroppedLabels: 3}},
		"one name, first wins":   {"", labels.NewSet(false, v1("thread.id", "2"), v1(standard+"thread.id", "1")), map[string]any{standard + "thread.id": "1"}, BuildStats{RenamedKeys: 3, DroppedLabels: 3}},
		"truncated":              {"p.", labels.NewSet(true, v1("a", "1")), map[string]any{"p.a": "1", "custom_labels.truncated": true}, BuildStats{}},
		"overflow":               {"p.", labels.OverflowSet(), map[string]any{"custom_labels.overflow": true}, BuildStats{}},
		"truncated to nothing":   {"p.", labels.NewSet(true), map[string]any{"custom_labels.truncated": true}, BuildStats{}},
		"none":                   {"p.", labels.NewSet(false), map[string]any{}, BuildStats{}},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(Options{Period: 1, LabelPrefix: tc.prefix})
			for range 3 {
				b.Add(&Sample{TimeUnixNano: 1500, UserFrames: []uint64{1}, Set: tc.set})
			}
			p, stats := buildOne(b, &resolver{}, 1000, 2000)
			flat := flatten(t, p)
			require.Len(t, flat, 1)
			require.Equal(t, tc.want, flat[0].attrs)
			tc.stats.Resources, tc.stats.Samples = 1, 3
			require.Equal(t, tc.stats, stats)
		})
	}
}

// The types of attributes are part of their identity.
func TestTextAndBytesStayApart(t *testing.T) {
	b := NewBuilder(Options{Period: 1})
	for _, set := range []*labels.Set{
		labels.NewSet(false, v1("a", "true")), labels.NewSet(true), labels.NewSet(false, v1("a", "\xff")),
		labels.NewSet(false, v1("a", `\xff`)), labels.NewSet(false, v1("a", "1")),
	} {
		b.Add(&Sample{TimeUnixNano: 1500, UserFrames: []uint64{1}, Set: set})
	}
	require.Len(t, buildFlat(t, b), 5)
}

// Keys that differ, but not in what is emitted, are one sample.
func TestEqualOutputIsOneSample(t *testing.T) {
	b := NewBuilder(Options{Period: 1, LabelPrefix: "p."})
	for i, set := range []*labels.Set{
		nil, labels.NewSet(false), labels.NewSet(false, v1("a", "1")),
		labels.NewSet(false, labels.Label{Key: "a", Value: "1", Source: record.ABIV0}),
		labels.NewSet(false, context("p.a", "1")),
		// The same two attributes, added in different orders.
		labels.NewSet(false, context("p.c", "1"), v1("b", "1")),
		labels.NewSet(false, v1("b", "1"), v1("c", "1")),
	} {
		b.Add(&Sample{TimeUnixNano: 1500 + uint64(i), UserFrames: []uint64{1}, Set: set})
	}
	require.Equal(t, 7, len(b.entries))
	p, stats := buildOne(b, &resolver{}, 1000, 2000)
	flat := flatten(t, p)
	require.Len(t, flat, 3)
	require.Equal(t, uint64(7), stats.Samples)
	require.Equal(t, []uint64{1500, 1501}, flat[0].times)
	require.Equal(t, []uint64{1502, 1503, 1504}, flat[1].times)
	require.Equal(t, []uint64{1505, 1506}, flat[2].times)
}

// ...and so are stacks that resolve to the same, as after a frame's address 0.
func TestEqualStacksAreOneSample(t *testing.T) {
	b := NewBuilder(Options{Period: 1})
	b.Add(&Sample{TimeUnixNano: 1500, UserFrames: []uint64{0x10, 0}})
	b.Add(&Sample{TimeUnixNano: 1501, UserFrames: []uint64{0x10, 1}})
	flat := buildFlat(t, b)
	require.Len(t, flat, 1)
	require.Equal(t, "u10 u0", flat[0].stack)
}

func TestStackMarks(t *testing.T) {
	b := NewBuilder(Options{Period: 1})
	b.Add(&Sample{TimeUnixNano: 1500, UserFrames: []uint64{1}, UserStack: record.OutcomeTruncated})
	b.Add(&Sample{TimeUnixNano: 1500})
	b.Add(&Sample{TimeUnixNano: 1501})
	b.Add(&Sample{TimeUnixNano: 1502, KernelFrames: []uint64{2}, KernelStack: record.OutcomeTruncated, UserStack: record.OutcomePresent})
	b.Add(&Sample{TimeUnixNano: 1503, UserFrames: []uint64{2}, KernelStack: record.OutcomeFault, UserStack: record.OutcomePresent})
	p, stats := buildOne(b, &resolver{}, 1000, 2000)
	flat := flatten(t, p)
	require.Equal(t, map[string]any{"custom_labels.stack_truncated": true}, flat[0].attrs)
	require.Equal(t, "[unknown]", flat[1].stack)
	require.Empty(t, flat[1].attrs)
	require.Equal(t, map[string]any{"custom_labels.stack_truncated": true}, flat[2].attrs)
	require.Equal(t, map[string]any{"custom_labels.stack_truncated": true}, flat[3].attrs)
	require.Len(t, flat, 4)
	require.Equal(t, BuildStats{Resources: 1, Samples: 5}, stats)
}

func TestResourceIsMadeValid(t *testing.T) {
	b := NewBuilder(Options{Period: 1})
	b.Add(&Sample{TimeUnixNano: 1500, UserFrames: []uint64{1}})
	p, _ := buildOne(b, &resolver{resource: func(_ uint64, attrs pcommon.Map) {
		attrs.PutStr("fine", `text with \x and é`)
		attrs.PutStr("value", "a\xffb")
		attrs.PutStr("key\xff", "v")
		attrs.PutStr("twice\xff", "loses")
		attrs.PutStr(`twice\xff`, "stays")
		attrs.PutStr("", "no key")
		attrs.PutEmptySlice("list").AppendEmpty().SetStr("\xfe")
		m := attrs.PutEmptyMap("map\xff")
		m.PutStr("in\xff", "\xfd")
		m.PutInt("int", 1)
	}}, 1000, 2000)
	flatten(t, p)
	require.Equal(t, map[string]any{
		"process.pid": int64(0),
		"fine":        `text with \x and é`,
		"value":       `a\xffb`,
		`key\xff`:     "v",
		`twice\xff`:   "stays",
		"list":        []any{`\xfe`},
		`map\xff`:     map[string]any{`in\xff`: `\xfd`, "int": int64(1)},
	}, p.ResourceProfiles().At(0).Resource().Attributes().AsRaw())
}
