// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"math"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// walked are the samples of a profile with these types, each a name and a unit.
func walked(types [][2]string, values ...[]int64) (found []sample.Sample, b sample.Batch) {
	p := &profile.Profile{}
	for _, t := range types {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: t[0], Unit: t[1]})
	}
	for _, v := range values {
		p.Sample = append(p.Sample, &profile.Sample{Value: v})
	}
	b = Walk(p, func(s *sample.Sample) {
		found = append(found, sample.Sample{Kind: s.Kind, Hits: s.Hits, Ns: s.Ns})
	})
	return found, b
}

// A file need not count absences: time of the one kind is none of the other.
func TestTimesWithoutCounts(t *testing.T) {
	found, b := walked([][2]string{{"cpu", "nanoseconds"}, {"off_cpu", "nanoseconds"}}, []int64{5, 0}, []int64{0, 7}, []int64{0, 0}, []int64{1, 2})
	require.Zero(t, b.Malformed)
	require.Equal(t, []sample.Sample{
		{Kind: sample.OnCPU, Hits: 1, Ns: 5}, {Kind: sample.OffCPU, Hits: 1, Ns: 7},
		{Kind: sample.OnCPU, Hits: 1, Ns: 1}, {Kind: sample.OffCPU, Hits: 1, Ns: 2},
	}, found)
}

// A value below the period is of a hit: none is lost.
func TestPartsOfPeriods(t *testing.T) {
	times := kindValues{kind: sample.OnCPU, periodNs: 10e6, hits: -1}
	for value, want := range map[int64]int64{0: 0, 1: 1, 5e6: 1, 10e6: 1, 19e6: 1, 20e6: 2} {
		hits, ns := times.point([]int64{value})
		require.Equal(t, []int64{want, value}, []int64{hits, ns})
	}
}

// TestLinkOfTags: tags that are ids are the link of a sample, any others are labels.
func TestLinkOfTags(t *testing.T) {
	const trace, span = "0a0b0c0000000000000000000000000d", "0405000000000000"
	for name, tc := range map[string]struct {
		trace, span string
		want        sample.Sample
	}{
		"both":       {trace, span, sample.Sample{TraceID: trace, SpanID: span}},
		"upper case": {strings.ToUpper(trace), span, sample.Sample{TraceID: trace, SpanID: span}},
		"swapped":    {span, trace, sample.Sample{Attributes: []sample.Attribute{{Key: sample.KeySpanID, Text: trace}, {Key: sample.KeyTraceID, Text: span}}}},
		"no hex":     {strings.Repeat("x", 32), span, sample.Sample{SpanID: span, Attributes: []sample.Attribute{{Key: sample.KeyTraceID, Text: strings.Repeat("x", 32)}}}},
		"zero":       {trace, strings.Repeat("0", 16), sample.Sample{TraceID: trace, Attributes: []sample.Attribute{{Key: sample.KeySpanID, Text: strings.Repeat("0", 16)}}}},
	} {
		p := &profile.Profile{
			SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
			Sample:     []*profile.Sample{{Value: []int64{1}, Label: map[string][]string{sample.KeyTraceID: {tc.trace}, sample.KeySpanID: {tc.span}}}},
		}
		Walk(p, func(s *sample.Sample) {
			require.Equal(t, tc.want, sample.Sample{TraceID: s.TraceID, SpanID: s.SpanID, Attributes: s.Attributes[:len(s.Attributes):len(s.Attributes)]}, name)
		})
	}
}

// A file has sums of any number of samples: those beyond the bound are cut, and not left out.
func TestLongSums(t *testing.T) {
	types := [][2]string{{"samples", "count"}, {"cpu", "nanoseconds"}, {"absences", "count"}, {"off_cpu", "nanoseconds"}}
	found, b := walked(types, []int64{0, 0, 3, sample.MaxNs + 1}, []int64{math.MaxInt64, math.MaxInt64, 0, 0}, []int64{0, 0, 1, -1}, []int64{-1, 1, 0, 0})
	require.EqualValues(t, 2, b.Malformed)
	require.EqualValues(t, 2, b.Cut)
	require.Equal(t, []sample.Sample{
		{Kind: sample.OffCPU, Hits: 3, Ns: sample.MaxNs}, {Kind: sample.OnCPU, Hits: sample.MaxNs, Ns: sample.MaxNs},
	}, found)

	counts := kindValues{kind: sample.OnCPU, periodNs: profiletest.PeriodNs, time: -1}
	_, ns := counts.point([]int64{sample.MaxNs})
	require.EqualValues(t, sample.MaxNs, ns)
}

// What is written is read again, also where all absences together were longer than one may be.
func TestLongSumsOfOurs(t *testing.T) {
	batch := profiletest.Absences()
	made := New(MaxBytes)
	for range 2 {
		batch.Absence(sample.MaxNs, "sleep")
	}
	gather(made, batch.Profiles)
	longest := sample.Sample{}
	b := Walk(written(t, made), func(s *sample.Sample) {
		if s.Ns > longest.Ns {
			longest = *s
		}
	})
	require.Zero(t, b.Malformed)
	require.EqualValues(t, 2, longest.Hits)
	require.EqualValues(t, sample.MaxNs, longest.Ns)
}

// Sums of what was cut do not wrap.
func TestSumsOfSums(t *testing.T) {
	made := New(MaxBytes)
	for range 8192 {
		made.Add(&sample.Sample{Hits: sample.MaxNs, Ns: sample.MaxNs, PeriodNs: 1, Process: &sample.Process{}})
	}
	require.Equal(t, []int64{math.MaxInt64, math.MaxInt64}, made.Profile().Sample[0].Value)
}
