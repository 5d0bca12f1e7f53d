// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// absence adds an absence of a thread that left the CPU in a function of the program.
func (f *fixture) absence(ns int64, function string, labels ...string) {
	s := f.sample(1, []string{"__schedule", function, "main"}, labels...)
	s.Values().Append(ns)
	kernel := f.dict.StackTable().At(int(s.StackIndex())).LocationIndices().At(0)
	m := f.dict.LocationTable().At(int(kernel)).MappingIndex()
	f.dict.MappingTable().At(int(m)).SetFilenameStrindex(f.text("[kernel.kallsyms]"))
}

// absences is a batch as the receiver's for off-CPU profiles: 3 s of acme, 1 s of a
// tenant that uses no CPU.
func absences() *fixture {
	f := newFixture().process(7, "writer")
	f.profile.SampleType().SetTypeStrindex(f.text("off_cpu"))
	f.profile.SampleType().SetUnitStrindex(f.text("nanoseconds"))
	f.profile.PeriodType().SetTypeStrindex(0)
	f.profile.PeriodType().SetUnitStrindex(0)
	f.profile.SetPeriod(0)
	f.absence(1e9, "read_pipe", labelPrefix+"tenant", "acme", "custom_labels.thread_state", "sleeping")
	f.absence(2e9, "lock", labelPrefix+"tenant", "acme", "custom_labels.thread_state", "sleeping")
	f.absence(1e9, "lock", labelPrefix+"tenant", "idler", "custom_labels.thread_state", "runnable")
	return f
}

func TestShowOffCPU(t *testing.T) {
	s := &sink{table: newTable([]string{"tenant"}), pprof: newPprofProfile(maxPprofBytes)}
	s.consume(tenants(t).profiles)
	s.consume(absences().profiles)
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

`, shown(t, s, viewFlags{rows: 20, functions: 5}))

	p := written(t, s.pprof)
	require.Equal(t, "absences", p.SampleType[2].Type)
	require.Equal(t, "off_cpu", p.SampleType[3].Type)
	require.Equal(t, "nanoseconds", p.SampleType[3].Unit)
	require.Equal(t, "cpu", p.DefaultSampleType)
	require.EqualValues(t, periodNs, p.Period)
	require.Equal(t, []int64{40, 40 * periodNs, 0, 0}, p.Sample[0].Value)
	last := p.Sample[len(p.Sample)-1]
	require.Equal(t, []int64{0, 0, 1, 1e9}, last.Value)
	require.Equal(t, []string{"runnable"}, last.Label["custom_labels.thread_state"])
	require.Equal(t, "__schedule", last.Location[0].Line[0].Function.Name)
}

// A file of off-CPU profiles alone is not an empty one.
func TestOffCPUOnly(t *testing.T) {
	s := &sink{table: newTable([]string{"tenant"})}
	s.consume(absences().profiles)
	require.Zero(t, s.table.hits)
	require.EqualValues(t, 3, s.table.absences)
	require.Equal(t, "acme", s.table.sorted()[0].values[0].text)
	require.Empty(t, s.table.shares, "no part of the comparison with measured CPU time")
}

// What makes no sense is counted, and no sum overflows.
func TestOffCPUBounds(t *testing.T) {
	f := absences()
	for range 10_000 {
		f.absence(maxSampleNs, "long", labelPrefix+"tenant", "acme")
	}
	f.absence(maxSampleNs+1, "too long")
	f.absence(-1, "negative")
	f.sample(1, []string{"no value"})
	s := &sink{table: newTable([]string{"tenant"}), pprof: newPprofProfile(maxPprofBytes)}
	s.consume(f.profiles)
	require.EqualValues(t, 3, s.malformed)
	require.EqualValues(t, math.MaxInt64, s.table.offCPUNs)
	require.EqualValues(t, math.MaxInt64, s.table.sorted()[0].offCPUNs)
	written(t, s.pprof)
}
