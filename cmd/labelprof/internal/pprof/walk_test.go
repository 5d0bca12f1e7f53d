// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

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
