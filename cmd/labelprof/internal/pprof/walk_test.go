// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"math"
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

// A file has sums of any number of samples: those beyond the bound are cut, and not left out.
func TestLongSums(t *testing.T) {
	types := [][2]string{{"samples", "count"}, {"cpu", "nanoseconds"}, {"absences", "count"}, {"off_cpu", "nanoseconds"}}
	found, b := walked(types, []int64{0, 0, 3, sample.MaxNs + 1}, []int64{math.MaxInt64, math.MaxInt64, 0, 0}, []int64{0, 0, 1, -1}, []int64{-1, 1, 0, 0})
	require.EqualValues(t, 2, b.Malformed)
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
