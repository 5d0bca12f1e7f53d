// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// filled is a table of a batch.
func filled(profiles pprofile.Profiles, by ...string) *Table {
	t := New(by)
	otlp.Walk(profiles, t.Add)
	return t
}

func shown(t *Table, v View) string {
	var b bytes.Buffer
	t.Render(&b, v)
	return b.String()
}

// whole is what the command shows when nothing else is wanted.
func whole() View { return View{Rows: 20, Functions: 5} }

func TestShow(t *testing.T) {
	s := filled(profiletest.Tenants().Profiles, "tenant")
	require.Equal(t, `CPU by tenant: 5.00 s in 100 samples of 2 processes, 40.0 % with a trace

  tenant     CPU   share  samples
  acme    3.00 s  60.0 %       60
  globex  1.50 s  30.0 %       30
  (none)  0.50 s  10.0 %       10

hottest functions, by self time

  acme
    66.7 %  parse_json                                    program
    33.3 %  render                                        program

  globex
   100.0 %  compress                                      program

  (none)
   100.0 %  spin                                          program

`, shown(s, whole()))
}

func TestShowBySeveralLabelsAndResource(t *testing.T) {
	s := filled(profiletest.Tenants().Profiles, "route", "service.name")
	out := shown(s, View{Rows: 2})
	require.Contains(t, out, "/a        writer-service  2.00 s  40.0 %       40\n")
	require.Contains(t, out, "(others)  (others)        1.50 s  30.0 %       30\n")
	require.NotContains(t, out, "hottest")
}

// TestHottest merges what several files call by one name, and nothing else.
func TestHottest(t *testing.T) {
	r := row{functions: map[functionKey]int64{
		{"parse", "/bin/b", true}:   1e9,
		{"parse", "/bin/a", true}:   2e9,
		{"0x1000", "/bin/a", false}: 2e9,
		{"0x1000", "/bin/b", false}: 1e9,
	}}
	require.Equal(t, []functionTime{
		{"parse", "/bin/a", 2, 3e9}, {"0x1000", "/bin/a", 1, 2e9}, {"0x1000", "/bin/b", 1, 1e9},
	}, hottest(r.functions))
	require.Empty(t, showFiles(functionTime{name: "0x7f00", files: 1}, 0), "no file")
	require.Equal(t, "a +1", showFiles(hottest(r.functions)[0], mostFiles))
	require.Equal(t, "b", showFiles(hottest(r.functions)[2], 0))
	many := functionTime{file: strings.Repeat("x", 40), files: 12}
	require.Len(t, []rune(showFiles(many, mostFiles)), mostFiles)
	require.Equal(t, many.file+" +11", showFiles(many, 0))
}

func TestShowTraced(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	f.Sample(3, []string{"start"})
	f.Sample(1, []string{"start"}).SetLinkIndex(1)
	l := f.Dict.LinkTable().AppendEmpty()
	l.SetTraceID([16]byte{1})
	l.SetSpanID([8]byte{2})
	s := filled(f.Profiles, "tenant")
	require.Contains(t, shown(s, whole()), "of 1 process, 25.0 % with a trace\n")
}

func TestLabelValuesAreEscaped(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	f.Sample(1, []string{"f\x1b]0;title\x07"}, "tenant", "\x1b[2Jgone\r\n\u202e\\")
	f.Sample(1, []string{"g"}, "tenant", "(none)")
	f.Sample(1, []string{"g"}, "tenant", "")
	s := f.Sample(1, []string{"g"})
	s.AttributeIndices().Append(f.Attribute("tenant", func(v pcommon.Value) { v.SetEmptyBytes().Append(0xff, 0, 'x') }))
	out := shown(filled(f.Profiles, "tenant"), whole())
	for _, want := range []string{`\x1b[2Jgone\r\n\u202e\\ `, `"(none)" `, `"" `, `f\x1b]0;title\a `, ` \xff\x00x `} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, strings.ReplaceAll(out, "\n", ""), "\x1b")
	require.Equal(t, strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' {
			return -1
		}
		return r
	}, out), out)
}

// Values that would be one when joined carelessly. In a pprof file, which has no label without a value, some are one.
func TestRowsAreKeptApart(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	f.Sample(1, []string{"f"}, "a", "x", "b", "")
	f.Sample(1, []string{"f"}, "a", "", "b", "x")
	f.Sample(1, []string{"f"}, "a", "x")
	f.Sample(1, []string{"f"}, "b", "x")
	f.Sample(1, []string{"f"}, "a", "x\x01\x00", "b", "")
	s, p := New([]string{"a", "b"}), pprof.New(pprof.MaxBytes)
	otlp.Walk(f.Profiles, func(entry *sample.Sample) {
		s.Add(entry)
		p.Add(entry)
	})
	require.Len(t, s.rows, 5)
	require.Len(t, p.Profile().Sample, 3)
	require.EqualValues(t, 3, p.Lost())
}

// Time can come as time too, and counts as values.
func TestSampleTypes(t *testing.T) {
	f := profiletest.New().Process(7, "counted")
	f.Sample(0, []string{"f"}, "tenant", "a").Values().Append(2, 3)
	f.Process(8, "timed").Profile.SampleType().SetTypeStrindex(f.Text("cpu"))
	f.Profile.SampleType().SetUnitStrindex(f.Text("nanoseconds"))
	f.Sample(0, []string{"f"}, "tenant", "b").Values().Append(4 * profiletest.PeriodNs)
	s := filled(f.Profiles, "tenant")
	rows := s.sorted()
	require.Equal(t, []int64{5, 5 * profiletest.PeriodNs}, []int64{rows[0].hits, rows[0].cpuNs})
	require.Equal(t, []int64{4, 4 * profiletest.PeriodNs}, []int64{rows[1].hits, rows[1].cpuNs})
}

// TestLittleTime: time without a whole hit is not nothing, and has its row.
func TestLittleTime(t *testing.T) {
	table := New([]string{"tenant"})
	require.True(t, table.Empty())
	table.Add(&sample.Sample{Ns: 5e6, Process: &sample.Process{}})
	require.False(t, table.Empty())
	require.Contains(t, shown(table, View{}), "CPU by tenant: 0.01 s in 0 samples\n")
	require.Contains(t, shown(table, View{}), "(others)  0.01 s  100.0 %        0\n")
}

func TestTableIsBounded(t *testing.T) {
	table := New([]string{"tenant"})
	proc := &sample.Process{PID: 7}
	for i := range maxFunctions + 10 {
		name := strings.Repeat("f", 1+i%7) + string(rune('a'+i%26)) + string(rune(0x4e00+i/26))
		table.Add(&sample.Sample{Hits: 1, Ns: profiletest.PeriodNs, Process: proc,
			Stack:      []*sample.Location{{Lines: []sample.Line{{Function: sample.Function{Name: name}}}}},
			Attributes: []sample.Attribute{{Key: "tenant", Text: name}}})
	}
	require.Len(t, table.rows, maxRows)
	require.EqualValues(t, maxFunctions+10-maxRows, table.otherRowHits)
	require.EqualValues(t, 10, table.otherFuncHits)
	require.EqualValues(t, maxFunctions+10, table.hits)
	require.LessOrEqual(t, len(table.shares), maxShares)
	require.EqualValues(t, 10*profiletest.PeriodNs, table.unsharedNs)
	notes := strings.Join(table.Notes(), "\n")
	require.Contains(t, notes, "too many label values")
	require.Contains(t, notes, "too many functions")
}

// TestManyProcesses: a bound is not shown as a number.
func TestManyProcesses(t *testing.T) {
	table := New([]string{"tenant"})
	table.Add(&sample.Sample{Hits: 1, Ns: 1, Process: &sample.Process{}})
	require.Contains(t, shown(table, View{}), " in 1 samples\n", "of which nobody says the process")
	for i := range maxProcesses + 1 {
		if i == maxProcesses {
			require.Contains(t, shown(table, View{}), "of 10000 processes")
		}
		table.Add(&sample.Sample{Hits: 1, Ns: 1, Process: &sample.Process{PID: int64(1 + i)}})
	}
	require.Contains(t, shown(table, View{}), "of at least 10000 processes")
}

func TestLongTextIsCut(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	f.Sample(1, []string{strings.Repeat("f", 5000)}, "tenant", strings.Repeat("é", 5000))
	s := filled(f.Profiles, "tenant")
	require.Equal(t, strings.Repeat("é", sample.MaxTextBytes/2), s.sorted()[0].values[0].text)
	require.Equal(t, "x"+strings.Repeat("é", sample.MaxTextBytes/2-1), sample.Texts{}.Of("x"+strings.Repeat("é", sample.MaxTextBytes)))
	require.Len(t, hottest(s.sorted()[0].functions)[0].name, sample.MaxTextBytes)
}

// Rows are told apart by where a value ends, whatever its bytes are.
func TestValuesOfARow(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	f.Sample(1, []string{"f"}, "tenant", "a\x01b", "route", "c")
	f.Sample(2, []string{"f"}, "tenant", "a", "route", "b\x01c")
	s := filled(f.Profiles, "tenant", "route")
	hits := map[string]int64{}
	for _, r := range s.rows {
		hits[r.values[0].text+"|"+r.values[1].text] = r.hits
	}
	require.Equal(t, map[string]int64{"a\x01b|c": 1, "a|b\x01c": 2}, hits)
}

// Sums of CPU time stay at the largest one, as those of time off the CPU do.
func TestCPUBounds(t *testing.T) {
	s := New([]string{"tenant"})
	for range 8192 {
		s.Add(&sample.Sample{Ns: sample.MaxNs, TraceID: "1", Process: &sample.Process{PID: 7}})
	}
	require.EqualValues(t, math.MaxInt64, s.cpuNs)
	require.EqualValues(t, math.MaxInt64, s.tracedNs)
	require.EqualValues(t, math.MaxInt64, s.sorted()[0].cpuNs)
	for _, ns := range s.shares {
		require.EqualValues(t, math.MaxInt64, ns)
	}
}
