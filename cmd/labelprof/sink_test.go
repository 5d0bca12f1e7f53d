// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

var defaultView = viewFlags{by: commaList{"tenant"}, rows: 20, functions: 5}

func shown(t *testing.T, s *sink, v viewFlags) string {
	t.Helper()
	var b bytes.Buffer
	s.show(&b, v)
	return b.String()
}

func TestShow(t *testing.T) {
	s := &sink{table: newTable([]string{"tenant"})}
	s.consume(tenants(t).profiles)
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

`, shown(t, s, defaultView))
}

func TestShowBySeveralLabelsAndResource(t *testing.T) {
	s := &sink{table: newTable([]string{"route", "service.name"})}
	s.consume(tenants(t).profiles)
	out := shown(t, s, viewFlags{rows: 2, functions: 0})
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
	require.Equal(t, "a +1", showFiles(hottest(r.functions)[0]))
	require.Equal(t, "b", showFiles(hottest(r.functions)[2]))
	require.Len(t, []rune(showFiles(functionTime{file: strings.Repeat("x", 40), files: 12})), fileColumns)
}

func TestShowTraced(t *testing.T) {
	f := newFixture().process(7, "writer")
	f.sample(3, []string{"start"})
	f.sample(1, []string{"start"}).SetLinkIndex(1)
	l := f.dict.LinkTable().AppendEmpty()
	l.SetTraceID([16]byte{1})
	l.SetSpanID([8]byte{2})
	s := &sink{table: newTable([]string{"tenant"})}
	s.consume(f.profiles)
	require.Contains(t, shown(t, s, defaultView), "of 1 processes, 25.0 % with a trace\n")
}

func TestFirstLines(t *testing.T) {
	for n, want := range []string{"a\n", "a\n", "a\nb\n", "a\nb\nc", "a\nb\nc"} {
		require.Equal(t, want, string(firstLines([]byte("a\nb\nc"), n)))
	}
}

func TestShowTruth(t *testing.T) {
	dir := t.TempDir()
	truthful, silent := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(truthful, []byte(`{"pid": 7, "sets": [
		{"labels": {"tenant": "acme", "route": "/a"}, "cpu_ns": 30}, {"labels": {"tenant": "acme", "route": "/b"}, "cpu_ns": 30},
		{"labels": {"tenant": "globex"}, "cpu_ns": 35}, {"labels": {"tenant": "unseen"}, "cpu_ns": 5}]}`), 0o600))
	// A process without labelled samples is on neither side.
	require.NoError(t, os.WriteFile(silent, []byte(`{"pid": 8, "sets": [{"labels": {"tenant": "acme"}, "cpu_ns": 1000}]}`), 0o600))

	broken := filepath.Join(dir, "c")
	require.NoError(t, os.WriteFile(broken, []byte("{"), 0o600))

	s := &sink{truthFiles: []string{truthful, silent, broken, filepath.Join(dir, "missing")}, table: newTable([]string{"tenant"})}
	f := tenants(t)
	f.process(7, "writer")
	f.sample(10, []string{"start"}) // without labels
	s.consume(f.profiles)
	out := shown(t, s, defaultView)
	require.Contains(t, out, `
  tenant     CPU   share  samples  measured    true  difference
  acme    3.00 s  54.5 %       60    66.7 %  60.0 %        +6.7
  globex  1.50 s  27.3 %       30    33.3 %  35.0 %        -1.7
  (none)  1.00 s  18.2 %       20
  unseen  0.00 s   0.0 %        0     0.0 %   5.0 %        -5.0
`)
	require.Contains(t, out, "labelled CPU of 1 processes (10.0 % of theirs is unlabelled);\n")
	require.Contains(t, out, "measured themselves; 1 more did, and have no such labels\n")
	require.Contains(t, out, "! decode "+broken)
	require.Contains(t, out, "! 1 of 4 truth files do not exist\n")
}

func TestLabelValuesAreEscaped(t *testing.T) {
	f := newFixture().process(7, "writer")
	f.sample(1, []string{"f\x1b]0;title\x07"}, "tenant", "\x1b[2Jgone\r\n\u202e\\")
	f.sample(1, []string{"g"}, "tenant", "(none)")
	f.sample(1, []string{"g"}, "tenant", "")
	s := f.sample(1, []string{"g"})
	s.AttributeIndices().Append(f.attribute("tenant", func(v pcommon.Value) { v.SetEmptyBytes().Append(0xff, 0, 'x') }))
	sk := &sink{table: newTable([]string{"tenant"})}
	sk.consume(f.profiles)
	out := shown(t, sk, defaultView)
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

// Values that would be one when joined carelessly.
func TestRowsAreKeptApart(t *testing.T) {
	f := newFixture().process(7, "writer")
	f.sample(1, []string{"f"}, "a", "x", "b", "")
	f.sample(1, []string{"f"}, "a", "", "b", "x")
	f.sample(1, []string{"f"}, "a", "x")
	f.sample(1, []string{"f"}, "b", "x")
	f.sample(1, []string{"f"}, "a", "x\x01\x00", "b", "")
	s := &sink{table: newTable([]string{"a", "b"}), pprof: newPprofProfile(maxPprofBytes)}
	s.consume(f.profiles)
	require.Len(t, s.table.rows, 5)
	require.Len(t, s.pprof.samples, 5)
}

func TestMalformedSamplesAreCounted(t *testing.T) {
	f := newFixture().process(7, "writer")
	f.sample(1, []string{"good"}, "tenant", "acme")
	f.sample(1, nil).SetStackIndex(99)
	f.sample(1, nil).SetStackIndex(-1)
	f.sample(1, nil).AttributeIndices().Append(99)
	f.sample(1, nil).AttributeIndices().Append(-1)
	f.sample(1, nil).SetLinkIndex(7)
	f.sample(0, nil).Values().Append(-1)
	f.sample(0, nil).Values().Append(1 << 62)
	f.sample(0, nil).Values().Append(1<<50, 1<<50, 1<<50)
	broken := f.sample(1, []string{"f"})
	f.dict.StackTable().At(int(broken.StackIndex())).LocationIndices().Append(1000)
	f.sample(1, []string{"g"})
	last := f.dict.LocationTable().At(f.dict.LocationTable().Len() - 1)
	last.SetMappingIndex(-5)
	f.sample(1, []string{"h"})
	last = f.dict.LocationTable().At(f.dict.LocationTable().Len() - 1)
	last.Lines().At(0).SetFunctionIndex(1 << 30)
	f.process(8, "off-cpu").profile.SampleType().SetTypeStrindex(f.text("off_cpu"))
	f.sample(5, []string{"f"})

	s := &sink{table: newTable([]string{"tenant"}), pprof: newPprofProfile(maxPprofBytes)}
	s.consume(f.profiles)
	require.EqualValues(t, 1, s.table.hits)
	require.Len(t, s.pprof.samples, 1)
	out := shown(t, s, defaultView)
	require.Contains(t, out, "! 11 malformed samples ignored\n")
	require.Contains(t, out, "! 1 profiles that are neither of CPU time nor off-CPU ignored\n")
}

func TestEmptyDictionary(t *testing.T) {
	f := newFixture().process(7, "writer")
	f.sample(1, []string{"f"}, "tenant", "acme")
	f.dict.StringTable().FromRaw(nil)
	s := &sink{table: newTable([]string{"tenant"})}
	s.consume(f.profiles)
	require.Zero(t, s.table.hits)
	require.EqualValues(t, 1, s.ignored)
}

// Time can come as time too, and counts as values.
func TestSampleTypes(t *testing.T) {
	f := newFixture().process(7, "counted")
	f.sample(0, []string{"f"}, "tenant", "a").Values().Append(2, 3)
	f.process(8, "timed").profile.SampleType().SetTypeStrindex(f.text("cpu"))
	f.profile.SampleType().SetUnitStrindex(f.text("nanoseconds"))
	f.sample(0, []string{"f"}, "tenant", "b").Values().Append(4 * periodNs)
	s := &sink{table: newTable([]string{"tenant"})}
	s.consume(f.profiles)
	rows := s.table.sorted()
	require.Equal(t, []int64{5, 5 * periodNs}, []int64{rows[0].hits, rows[0].cpuNs})
	require.Equal(t, []int64{4, 4 * periodNs}, []int64{rows[1].hits, rows[1].cpuNs})
}

func TestTableIsBounded(t *testing.T) {
	table := newTable([]string{"tenant"})
	proc := &process{pid: 7}
	for i := range maxFunctions + 10 {
		name := strings.Repeat("f", 1+i%7) + string(rune('a'+i%26)) + string(rune(0x4e00+i/26))
		table.add(&sample{hits: 1, cpuNs: periodNs, process: proc,
			stack:      []*location{{Lines: []line{{Function: function{Name: name}}}}},
			attributes: []attribute{{key: "tenant", text: name}}})
	}
	require.Len(t, table.rows, maxRows)
	require.EqualValues(t, maxFunctions+10-maxRows, table.otherRowHits)
	require.EqualValues(t, 10, table.otherFuncHits)
	require.EqualValues(t, maxFunctions+10, table.hits)
	require.LessOrEqual(t, len(table.shares), maxShares)
	require.EqualValues(t, 10*periodNs, table.unsharedNs)
	notes := strings.Join((&sink{table: table}).notes(), "\n")
	require.Contains(t, notes, "too many label values")
	require.Contains(t, notes, "too many functions")
}

func TestLongTextIsCut(t *testing.T) {
	f := newFixture().process(7, "writer")
	f.sample(1, []string{strings.Repeat("f", 5000)}, "tenant", strings.Repeat("é", 5000))
	s := &sink{table: newTable([]string{"tenant"})}
	s.consume(f.profiles)
	require.Equal(t, strings.Repeat("é", maxTextBytes/2), s.table.sorted()[0].values[0].text)
	require.Equal(t, "x"+strings.Repeat("é", maxTextBytes/2-1), cut("x"+strings.Repeat("é", maxTextBytes)))
	require.Len(t, hottest(s.table.sorted()[0].functions)[0].name, maxTextBytes)
}
