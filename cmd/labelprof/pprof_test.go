// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// written writes a profile and reads it as pprof does.
func written(t *testing.T, p *pprofProfile) *profile.Profile {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, p.profile.Write(&b))
	parsed, err := profile.Parse(&b)
	require.NoError(t, err)
	require.NoError(t, parsed.CheckValid())
	return parsed
}

func TestPprofProfile(t *testing.T) {
	s := &sink{pprof: newPprofProfile(maxPprofBytes)}
	s.consume(tenants(t).profiles)
	s.consume(tenants(t).profiles) // the same again adds up
	p := written(t, s.pprof)

	require.Equal(t, "samples", p.SampleType[0].Type)
	require.Equal(t, "count", p.SampleType[0].Unit)
	require.Equal(t, "cpu", p.SampleType[1].Type)
	require.Equal(t, "nanoseconds", p.SampleType[1].Unit)
	require.Equal(t, "cpu", p.PeriodType.Type)
	require.EqualValues(t, periodNs, p.Period)
	require.EqualValues(t, 1_000_000_000, p.TimeNanos)
	require.EqualValues(t, 5_000_000_000, p.DurationNanos)

	require.Len(t, p.Sample, 4)
	first := p.Sample[0]
	require.Equal(t, []int64{80, 80 * periodNs}, first.Value)
	require.Equal(t, map[string][]string{
		"tenant": {"acme"}, "route": {"/a"}, "process.executable.name": {"writer"},
		"trace_id": {"0a0b0c0000000000000000000000000d"}, "span_id": {"0405000000000000"},
	}, first.Label)
	require.Equal(t, map[string][]int64{"process.pid": {7}}, first.NumLabel)
	require.Equal(t, "parse_json", first.Location[0].Line[0].Function.Name)
	require.Equal(t, "main", first.Location[1].Line[0].Function.Name)
	require.Equal(t, "/usr/bin/program", first.Location[0].Mapping.File)
	require.Equal(t, "abcd", first.Location[0].Mapping.BuildID)
	require.EqualValues(t, 0x1000, first.Location[0].Address)
	require.Len(t, p.Mapping, 1)
	require.Len(t, p.Function, 5)

	last := p.Sample[3]
	require.Equal(t, map[string][]string{"process.executable.name": {"plain"}}, last.Label)
}

func TestPprofTags(t *testing.T) {
	f := newFixture().process(7, "writer")
	s := f.sample(1, []string{"f"}, "trace_id", "01000000000000000000000000000000", "tenant", "bare", labelPrefix+"tenant", "prefixed",
		labelPrefix+keyPID, "99", labelPrefix, "empty key", "tenant", "third")
	s.AttributeIndices().Append(
		f.attribute("thread.id", func(v pcommon.Value) { v.SetInt(-12) }),
		f.attribute("custom_labels.truncated", func(v pcommon.Value) { v.SetBool(true) }),
		f.attribute(labelPrefix+"raw", func(v pcommon.Value) { v.SetEmptyBytes().Append('a', 0xff) }))
	f.link(s, [16]byte{1}, [8]byte{})
	sk := &sink{pprof: newPprofProfile(maxPprofBytes)}
	sk.consume(f.profiles)
	p := written(t, sk.pprof)
	require.Equal(t, map[string][]string{
		"tenant": {"bare"}, labelPrefix + "tenant": {"prefixed"}, labelPrefix + keyPID: {"99"}, labelPrefix: {"empty key"},
		"trace_id": {"01000000000000000000000000000000"}, "process.executable.name": {"writer"},
		"custom_labels.truncated": {"true"}, "raw": {`a\xff`},
	}, p.Sample[0].Label)
	require.Equal(t, map[string][]int64{"process.pid": {7}, "thread.id": {-12}}, p.Sample[0].NumLabel)
	require.EqualValues(t, 1, sk.pprof.lost)
}

func TestPprofWithoutSymbols(t *testing.T) {
	f := newFixture().process(7, "writer")
	f.sample(3, []string{"", ""}, "tenant", "acme")
	f.sample(2, nil, "tenant", "acme")
	s := &sink{pprof: newPprofProfile(maxPprofBytes), table: newTable([]string{"tenant"})}
	s.consume(f.profiles)
	p := written(t, s.pprof)
	require.Empty(t, p.Sample[0].Location[0].Line)
	require.EqualValues(t, 0x1001, p.Sample[0].Location[1].Address)
	require.Contains(t, shown(t, s, defaultView), "60.0 %  0x1000 ")
}

// Functions that are inlined at one address stay lines of one location.
func TestPprofInlined(t *testing.T) {
	f := newFixture().process(7, "writer")
	f.sample(3, []string{"inner", "main"}, "tenant", "acme")
	leaf := f.dict.LocationTable().At(1)
	for i := range 2 {
		fn := f.dict.FunctionTable().AppendEmpty()
		fn.SetNameStrindex(f.text([]string{"middle", "outer"}[i]))
		fn.SetFilenameStrindex(f.text("a.go"))
		fn.SetStartLine(int64(10 * (i + 1)))
		l := leaf.Lines().AppendEmpty()
		l.SetFunctionIndex(int32(f.dict.FunctionTable().Len() - 1))
		l.SetLine(int64(10*(i+1) + 3))
	}
	s := &sink{pprof: newPprofProfile(maxPprofBytes), table: newTable([]string{"tenant"})}
	s.consume(f.profiles)
	p := written(t, s.pprof)
	require.Len(t, p.Location, 2)
	lines := p.Sample[0].Location[0].Line
	require.Len(t, lines, 3)
	require.Equal(t, "inner", lines[0].Function.Name)
	require.Equal(t, "outer", lines[2].Function.Name)
	require.Equal(t, "a.go", lines[2].Function.Filename)
	require.EqualValues(t, 20, lines[2].Function.StartLine)
	require.EqualValues(t, 23, lines[2].Line)
	require.True(t, p.Mapping[0].HasInlineFrames && p.Mapping[0].HasFilenames && p.Mapping[0].HasLineNumbers)
	require.Contains(t, shown(t, s, defaultView), "inner", "the innermost counts")
}

func TestPprofIsBounded(t *testing.T) {
	s := &sink{pprof: newPprofProfile(400)}
	s.consume(tenants(t).profiles)
	require.Len(t, s.pprof.samples, 1)
	require.EqualValues(t, 60, s.pprof.dropped)
	require.Contains(t, s.notes(), "60 samples not in the pprof file: no room")
	written(t, s.pprof)
}

func TestGoToolPprof(t *testing.T) {
	s := &sink{pprof: newPprofProfile(maxPprofBytes)}
	s.consume(tenants(t).profiles)
	file := filepath.Join(t.TempDir(), "out.pb.gz")
	require.NoError(t, s.finish(file))

	pprof := func(args ...string) string {
		out, err := exec.Command("go", append(append([]string{"tool", "pprof", "-symbolize=none"}, args...), file)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	out := pprof("-top", "-tagfocus=tenant=acme")
	require.Contains(t, out, "parse_json")
	require.Contains(t, out, "render")
	require.NotContains(t, out, "compress")
	require.Contains(t, out, "3s")

	out = pprof("-top", "-tagfocus=trace_id=0a0b0c0000000000000000000000000d")
	require.Contains(t, out, "parse_json")
	require.NotContains(t, out, "render")

	out = pprof("-top", "-tagfocus=process.pid=8")
	require.Contains(t, out, "spin")
	require.NotContains(t, out, "compress")

	out = pprof("-tags")
	for _, want := range []string{"tenant:", "route:", "process.executable.name:", "span_id:", "globex"} {
		require.Contains(t, out, want)
	}
	require.False(t, strings.Contains(out, labelPrefix))
}
