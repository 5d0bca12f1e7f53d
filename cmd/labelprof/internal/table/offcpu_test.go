// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

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

// TestWaitsInModules: time in a module of the kernel is that of the program's function, also in
// pprof, which has no types of frames.
func TestWaitsInModules(t *testing.T) {
	f := profiletest.Absences()
	stack := []string{"schedule", "io_schedule", "ext4_file_read_iter", "vfs_read", "read_orders", "main"}
	s := f.Sample(1, stack, "tenant", "reader")
	s.Values().Append(9e9)
	native := f.Attribute("profile.frame.type", func(v pcommon.Value) { v.SetStr("native") })
	kernel := f.Attribute("profile.frame.type", func(v pcommon.Value) { v.SetStr("kernel") })
	for i, at := range f.Dict.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
		l := f.Dict.LocationTable().At(int(at))
		if i >= 4 {
			l.AttributeIndices().Append(native)
			continue
		}
		l.AttributeIndices().Append(kernel)
		file := "[kernel.kallsyms]"
		if i == 2 {
			file = "[ext4]"
		}
		f.Dict.MappingTable().At(int(l.MappingIndex())).SetFilenameStrindex(f.Text(file))
	}
	p := pprof.New(pprof.MaxBytes)
	otlp.Walk(f.Profiles, p.Add)
	ofPprof := New([]string{"tenant"})
	pprof.Walk(p.Profile(), ofPprof.Add)
	for name, table := range map[string]*Table{"OTLP": filled(f.Profiles, "tenant"), "pprof": ofPprof} {
		first := table.sorted()[0]
		require.Equal(t, "reader", first.values[0].text, name)
		require.Equal(t, []functionTime{{"read_orders", "/usr/bin/program", 1, 9e9}}, hottest(first.waits), name)
	}
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
