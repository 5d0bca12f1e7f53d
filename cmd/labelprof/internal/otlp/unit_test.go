// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// All values of one sample together are bounded as each is, so that no sum that matters overflows.
func TestSampleIsBounded(t *testing.T) {
	u := unit{kind: sample.OnCPU, periodNs: 1}
	var s sample.Sample
	require.True(t, u.add(&s, 1, sample.MaxNs-1))
	require.True(t, u.add(&s, 2, 1))
	require.False(t, u.add(&s, 3, 1))
	require.EqualValues(t, sample.MaxNs, s.Ns)
	require.Len(t, s.Points, 2)
	require.False(t, u.add(&sample.Sample{}, 1, sample.MaxNs+1))
}

// A thread that slept for hours counts, with as much as a sample may have: its value is a
// hundred times as long where one of a hundred such absences is told.
func TestLongAbsences(t *testing.T) {
	const slept = 4 * time.Hour * 100
	require.Greater(t, int64(slept), int64(sample.MaxNs))
	u := unit{kind: sample.OffCPU, threshold: 1}
	for values, want := range map[[3]int64][3]int64{
		{int64(slept), 5, math.MaxInt64}: {sample.MaxNs, 0, 0},
		{5, int64(slept), 7}:             {5, sample.MaxNs - 5, 0},
		{1, 2, sample.MaxNs - 3}:         {1, 2, sample.MaxNs - 3},
	} {
		var s sample.Sample
		for i, value := range values {
			require.True(t, u.add(&s, uint64(i), value))
			require.Equal(t, sample.Point{TimeNs: int64(i), Hits: 1, Ns: want[i]}, s.Points[i])
		}
		require.EqualValues(t, 3, s.Hits)
		require.EqualValues(t, sample.MaxNs, s.Ns)
		require.False(t, u.add(&s, 4, -1), "what is negative is no time")
	}
	require.EqualValues(t, 3+2, u.cut, "times without a note")
}

// Where one of so many absences has a value, each value counts for all of these.
func TestAbsencesOfThreshold(t *testing.T) {
	double := func(threshold float64) func(pcommon.Value) {
		return func(v pcommon.Value) { v.SetDouble(threshold) }
	}
	for _, tc := range []struct {
		name string
		set  func(pcommon.Value)
		want []int64
	}{
		{"the default", double(0.01), []int64{100, 100, 100}},
		{"all", double(1), []int64{1, 1, 1}},
		{"rounded as a whole", double(0.4), []int64{3, 2, 3}},
		{"the least", double(1e-6), []int64{1e6, 1e6, 1e6}},
		{"less", double(1e-300), []int64{1, 1, 1}},
		{"more than all", double(1.5), []int64{1, 1, 1}},
		{"none", double(0), []int64{1, 1, 1}},
		{"negative", double(-0.5), []int64{1, 1, 1}},
		{"no number", double(math.NaN()), []int64{1, 1, 1}},
		{"another type", func(v pcommon.Value) { v.SetStr("0.01") }, []int64{1, 1, 1}},
	} {
		b := profiletest.Absences()
		b.Profile.AttributeIndices().Append(math.MaxInt32, b.Attribute("other", tc.set), b.Attribute(keyThreshold, tc.set))
		var hits []int64
		var ns int64
		found := Walk(b.Profiles, func(s *sample.Sample) {
			hits = append(hits, s.Hits)
			ns += s.Ns
			require.Equal(t, s.Hits, s.Points[0].Hits)
		})
		require.Equal(t, tc.want, hits, tc.name)
		require.EqualValues(t, 4e9, ns, "times are weighted already")
		require.Zero(t, found.Cut)
	}
}

// So do those of processes with few absences each, together.
func TestAbsencesOfProcesses(t *testing.T) {
	const processes = 6
	b := profiletest.Absences()
	b.Profile.AttributeIndices().Append(b.Attribute(keyThreshold, func(v pcommon.Value) { v.SetDouble(0.4) }))
	resources := b.Profiles.ResourceProfiles()
	for range processes - 1 {
		resources.At(0).CopyTo(resources.AppendEmpty())
	}
	hits := int64(0)
	Walk(b.Profiles, func(s *sample.Sample) { hits += s.Hits })
	require.EqualValues(t, math.Round(processes*3/0.4), hits)
}

// A value below the period, or between two multiples of it, is of a hit: none is lost.
func TestPartsOfPeriods(t *testing.T) {
	u := unit{kind: sample.OnCPU, periodNs: 10e6}
	for value, want := range map[int64]int64{0: 0, 1: 1, 5e6: 1, 10e6: 1, 19e6: 1, 20e6: 2} {
		hits, ns, ok := u.of(value)
		require.True(t, ok)
		require.Equal(t, []int64{want, value}, []int64{hits, ns})
	}
}
