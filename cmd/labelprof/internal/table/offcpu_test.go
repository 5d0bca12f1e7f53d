// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

func TestShowOffCPU(t *testing.T) {
	s := filled(profiletest.Tenants().Profiles, "tenant")
	otlp.Walk(profiletest.Absences().Profiles, s.Add)
	require.Equal(t, `CPU by tenant: 5.00 s in 100 samples of 2 processes, 40.0 % with a trace; 4.00 s off it, in 3 absences

  tenant     CPU   share  samples  off CPU
  acme    3.00 s  60.0 %       60   3.00 s
  globex  1.50 s  30.0 %       30   0.00 s
  (none)  0.50 s  10.0 %       10   0.00 s
  idler   0.00 s   0.0 %        0   1.00 s

hottest functions, by self time

  acme
    66.7 %  parse_json                                    program
    33.3 %  render                                        program

  globex
   100.0 %  compress                                      program

  (none)
   100.0 %  spin                                          program

functions that leave the CPU, by the time until they have it back

  acme
    66.7 %  lock                                          program
    33.3 %  read_pipe                                     program

  idler
   100.0 %  lock                                          program

`, shown(s, View{Rows: 20, Functions: 5}))
}

// A file of off-CPU profiles alone is not an empty one.
func TestOffCPUOnly(t *testing.T) {
	s := filled(profiletest.Absences().Profiles, "tenant")
	require.Zero(t, s.hits)
	require.EqualValues(t, 3, s.absences)
	require.Equal(t, "acme", s.sorted()[0].values[0].text)
	require.Empty(t, s.shares, "no part of the comparison with measured CPU time")
}

// What makes no sense is counted, and no sum overflows.
func TestOffCPUBounds(t *testing.T) {
	f := profiletest.Absences()
	for range 10_000 {
		f.Absence(sample.MaxNs, "long", sample.LabelPrefix+"tenant", "acme")
	}
	f.Absence(sample.MaxNs+1, "longer", sample.LabelPrefix+"tenant", "sleeper")
	f.Absence(-1, "negative")
	f.Sample(1, []string{"no value"})
	s, p := New([]string{"tenant"}), pprof.New(pprof.MaxBytes)
	found := otlp.Walk(f.Profiles, func(entry *sample.Sample) {
		s.Add(entry)
		p.Add(entry)
	})
	require.EqualValues(t, 2, found.Malformed)
	require.EqualValues(t, math.MaxInt64, s.offCPUNs)
	require.EqualValues(t, math.MaxInt64, s.sorted()[0].offCPUNs)
	require.EqualValues(t, sample.MaxNs, s.sorted()[1].offCPUNs)
	var b bytes.Buffer
	require.NoError(t, p.Profile().Write(&b))
	_, err := profile.Parse(&b)
	require.NoError(t, err)
}
