// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/table"
)

// written writes a profile and reads it as pprof does.
func written(t *testing.T, p *Builder) *profile.Profile {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, p.Profile().Write(&b))
	parsed, err := profile.Parse(&b)
	require.NoError(t, err)
	require.NoError(t, parsed.CheckValid())
	return parsed
}

// gather takes in a batch.
func gather(p *Builder, profiles pprofile.Profiles) {
	found := otlp.Walk(profiles, p.Add)
	p.Span(found.StartNs, found.EndNs)
}

// shown is the table of a batch.
func shown(profiles pprofile.Profiles) string {
	byTenant := table.New([]string{"tenant"})
	otlp.Walk(profiles, byTenant.Add)
	var b bytes.Buffer
	byTenant.Render(&b, table.View{Rows: 20, Functions: 5})
	return b.String()
}

func TestPprofProfile(t *testing.T) {
	made := New(MaxBytes)
	gather(made, profiletest.Tenants().Profiles)
	gather(made, profiletest.Tenants().Profiles) // the same again adds up
	p := written(t, made)

	require.Equal(t, "samples", p.SampleType[0].Type)
	require.Equal(t, "count", p.SampleType[0].Unit)
	require.Equal(t, "cpu", p.SampleType[1].Type)
	require.Equal(t, "nanoseconds", p.SampleType[1].Unit)
	require.Equal(t, "cpu", p.PeriodType.Type)
	require.EqualValues(t, profiletest.PeriodNs, p.Period)
	require.EqualValues(t, 1_000_000_000, p.TimeNanos)
	require.EqualValues(t, 5_000_000_000, p.DurationNanos)

	require.Len(t, p.Sample, 4)
	first := p.Sample[0]
	require.Equal(t, []int64{80, 80 * profiletest.PeriodNs}, first.Value)
	require.Equal(t, map[string][]string{
		"tenant": {"acme"}, "route": {"/a"}, "process.executable.name": {"writer"}, "service.name": {"writer-service"},
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
	require.Equal(t, map[string][]string{"process.executable.name": {"plain"}, "service.name": {"plain-service"}}, last.Label)
}

func TestPprofTags(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	s := f.Sample(1, []string{"f"}, "trace_id", "01000000000000000000000000000000", "tenant", "bare", sample.LabelPrefix+"tenant", "prefixed",
		sample.LabelPrefix+sample.KeyPID, "99", sample.LabelPrefix, "empty key", "tenant", "third")
	s.AttributeIndices().Append(
		f.Attribute("thread.id", func(v pcommon.Value) { v.SetInt(-12) }),
		f.Attribute("custom_labels.truncated", func(v pcommon.Value) { v.SetBool(true) }),
		f.Attribute(sample.LabelPrefix+"raw", func(v pcommon.Value) { v.SetEmptyBytes().Append('a', 0xff) }))
	f.Link(s, [16]byte{1}, [8]byte{})
	made := New(MaxBytes)
	gather(made, f.Profiles)
	p := written(t, made)
	require.Equal(t, map[string][]string{
		"tenant": {"bare"}, sample.LabelPrefix + "tenant": {"prefixed"}, sample.LabelPrefix + sample.KeyPID: {"99"}, sample.LabelPrefix: {"empty key"},
		"trace_id": {"01000000000000000000000000000000"}, "process.executable.name": {"writer"}, "service.name": {"writer-service"},
		"custom_labels.truncated": {"true"}, "raw": {`a\xff`},
	}, p.Sample[0].Label)
	require.Equal(t, map[string][]int64{"process.pid": {7}, "thread.id": {-12}}, p.Sample[0].NumLabel)
	require.EqualValues(t, 1, made.lost)
}

// TestPprofAgain: a label does not pass for what the kernel says when a file of pprof is read again, where both are
// tags in the order of their keys, texts first; nor for what the receiver says of the sample.
func TestPprofAgain(t *testing.T) {
	f := profiletest.New().Process(7, "evil")
	f.Profiles.ResourceProfiles().At(0).Resource().Attributes().PutInt("process.real_user.id", 1000)
	s := f.Sample(1, []string{"f"}, sample.LabelPrefix+sample.KeyPID, "1", sample.LabelPrefix+sample.KeyProcessName, "postgres",
		sample.LabelPrefix+"process.real_user.id", "0", sample.LabelPrefix+"custom_labels.truncated", "false")
	s.AttributeIndices().Append(f.Attribute("custom_labels.truncated", func(v pcommon.Value) { v.SetBool(true) }))
	made := New(MaxBytes)
	gather(made, f.Profiles)
	for range 2 {
		p := written(t, made)
		require.Equal(t, map[string][]string{
			sample.KeyProcessName: {"evil"}, "service.name": {"evil-service"}, "custom_labels.truncated": {"true"},
			sample.LabelPrefix + sample.KeyPID: {"1"}, sample.LabelPrefix + sample.KeyProcessName: {"postgres"},
			sample.LabelPrefix + "process.real_user.id": {"0"}, sample.LabelPrefix + "custom_labels.truncated": {"false"},
		}, p.Sample[0].Label)
		require.Equal(t, map[string][]int64{sample.KeyPID: {7}, "process.real_user.id": {1000}}, p.Sample[0].NumLabel)
		require.Zero(t, made.lost)
		made = New(MaxBytes)
		Walk(p, made.Add)
	}
}

// TestPprofContainers: where the resource says the container, that is the tag, and no label is.
func TestPprofContainers(t *testing.T) {
	f := profiletest.New().Process(7, "evil")
	f.Profiles.ResourceProfiles().At(0).Resource().Attributes().PutStr("container.id", "attacker")
	f.Sample(1, []string{"f"}, sample.LabelPrefix+"container.id", "victim")
	f.Process(8, "plain").Sample(1, []string{"f"}, sample.LabelPrefix+"container.id", "mine")
	made := New(MaxBytes)
	gather(made, f.Profiles)
	p := written(t, made)
	require.Equal(t, map[string][]string{
		sample.KeyProcessName: {"evil"}, "service.name": {"evil-service"}, "container.id": {"attacker"}, sample.LabelPrefix + "container.id": {"victim"},
	}, p.Sample[0].Label)
	require.Equal(t, []string{"mine"}, p.Sample[1].Label["container.id"])
}

// TestPprofResource: what the resource says is in the profile; a label with the key goes before
// what a program says of itself.
func TestPprofResource(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	resource := f.Profiles.ResourceProfiles().At(0).Resource().Attributes()
	resource.PutStr("host.name", "a")
	resource.PutInt("process.real_user.id", 1000)
	resource.PutInt("shard", 3)
	resource.PutStr("", "no key")
	f.Sample(1, []string{"f"}, sample.LabelPrefix+"host.name", "b", sample.LabelPrefix+"process.real_user.id", "0")
	made := New(MaxBytes)
	gather(made, f.Profiles)
	p := written(t, made)
	require.Equal(t, map[string][]string{
		sample.KeyProcessName: {"writer"}, "service.name": {"writer-service"}, "host.name": {"b"}, sample.LabelPrefix + "process.real_user.id": {"0"},
	}, p.Sample[0].Label)
	require.Equal(t, map[string][]int64{sample.KeyPID: {7}, "process.real_user.id": {1000}, "shard": {3}}, p.Sample[0].NumLabel)
	require.Zero(t, made.lost)
}

func TestPprofWithoutSymbols(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	f.Sample(3, []string{"", ""}, "tenant", "acme")
	f.Sample(2, nil, "tenant", "acme")
	made := New(MaxBytes)
	gather(made, f.Profiles)
	p := written(t, made)
	require.Empty(t, p.Sample[0].Location[0].Line)
	require.EqualValues(t, 0x1001, p.Sample[0].Location[1].Address)
	require.Contains(t, shown(f.Profiles), "60.0 %  0x1000 ")
}

// TestPprofFunctions: go tool pprof looks for functions of files of which none is named, and of no others.
func TestPprofFunctions(t *testing.T) {
	named, unnamed := sample.Mapping{Start: 1, Limit: 9, File: "/named"}, sample.Mapping{Start: 10, Limit: 19, File: "/unnamed"}
	p := New(MaxBytes)
	p.Add(&sample.Sample{Hits: 1, Process: &sample.Process{}, Stack: []*sample.Location{
		{Address: 1, Mapping: named, Lines: []sample.Line{{Function: sample.Function{Name: "main"}}}}, {Address: 2, Mapping: named}, {Address: 11, Mapping: unnamed},
	}})
	functions := map[string]bool{}
	for _, m := range written(t, p).Mapping {
		functions[m.File] = m.HasFunctions
	}
	require.Equal(t, map[string]bool{"/named": true, "/unnamed": false}, functions)
}

// Functions that are inlined at one address stay lines of one location.
func TestPprofInlined(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	f.Sample(3, []string{"inner", "main"}, "tenant", "acme")
	leaf := f.Dict.LocationTable().At(1)
	for i := range 2 {
		fn := f.Dict.FunctionTable().AppendEmpty()
		fn.SetNameStrindex(f.Text([]string{"middle", "outer"}[i]))
		fn.SetFilenameStrindex(f.Text("a.go"))
		fn.SetStartLine(int64(10 * (i + 1)))
		l := leaf.Lines().AppendEmpty()
		l.SetFunctionIndex(int32(f.Dict.FunctionTable().Len() - 1))
		l.SetLine(int64(10*(i+1) + 3))
	}
	made := New(MaxBytes)
	gather(made, f.Profiles)
	p := written(t, made)
	require.Len(t, p.Location, 2)
	lines := p.Sample[0].Location[0].Line
	require.Len(t, lines, 3)
	require.Equal(t, "inner", lines[0].Function.Name)
	require.Equal(t, "outer", lines[2].Function.Name)
	require.Equal(t, "a.go", lines[2].Function.Filename)
	require.EqualValues(t, 20, lines[2].Function.StartLine)
	require.EqualValues(t, 23, lines[2].Line)
	require.True(t, p.Mapping[0].HasInlineFrames && p.Mapping[0].HasFilenames && p.Mapping[0].HasLineNumbers)
	require.Contains(t, shown(f.Profiles), "inner", "the innermost counts")
}

func TestPprofIsBounded(t *testing.T) {
	p := New(400)
	gather(p, profiletest.Tenants().Profiles)
	require.Len(t, p.samples, 1)
	require.EqualValues(t, 60, p.dropped)
	require.Contains(t, p.Notes(), "60 samples not in the pprof file: no room (--max-memory allows more)")
	written(t, p)
}

func TestGoToolPprof(t *testing.T) {
	p := New(MaxBytes)
	gather(p, profiletest.Tenants().Profiles)
	file := filepath.Join(t.TempDir(), "out.pb.gz")
	require.NoError(t, p.WriteFile(file))

	tool := func(args ...string) string {
		out, err := exec.Command("go", append(append([]string{"tool", "pprof", "-symbolize=none"}, args...), file)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	out := tool("-top", "-tagfocus=tenant=acme")
	require.Contains(t, out, "parse_json")
	require.Contains(t, out, "render")
	require.NotContains(t, out, "compress")
	require.Contains(t, out, "3s")

	out = tool("-top", "-tagfocus=trace_id=0a0b0c0000000000000000000000000d")
	require.Contains(t, out, "parse_json")
	require.NotContains(t, out, "render")

	out = tool("-top", "-tagfocus=process.pid=8")
	require.Contains(t, out, "spin")
	require.NotContains(t, out, "compress")

	out = tool("-tags")
	for _, want := range []string{"tenant:", "route:", "process.executable.name:", "span_id:", "globex"} {
		require.Contains(t, out, want)
	}
	require.False(t, strings.Contains(out, sample.LabelPrefix))
}

// Two lines of a function at one address are two places.
func TestPprofLines(t *testing.T) {
	made := New(MaxBytes)
	f := profiletest.New().Process(7, "writer")
	first := f.Sample(1, []string{"parse"})
	second := f.Sample(1, nil)
	place := f.Dict.StackTable().At(int(first.StackIndex())).LocationIndices().At(0)
	copied := f.Dict.LocationTable().AppendEmpty()
	f.Dict.LocationTable().At(int(place)).CopyTo(copied)
	copied.Lines().At(0).SetLine(12)
	f.Dict.StackTable().At(int(second.StackIndex())).LocationIndices().Append(int32(f.Dict.LocationTable().Len() - 1))
	gather(made, f.Profiles)
	p := written(t, made)
	require.Len(t, p.Function, 1)
	require.Len(t, p.Location, 2)
	require.Len(t, p.Sample, 2)
	require.Zero(t, p.Sample[0].Location[0].Line[0].Line)
	require.EqualValues(t, 12, p.Sample[1].Location[0].Line[0].Line)
}

// A profile covers the time of all batches, whichever comes first.
func TestPprofSpan(t *testing.T) {
	for _, starts := range [][]int64{{3e9, 1e9}, {1e9, 3e9}, {1e9, 3e9, 2e9}} {
		made := New(MaxBytes)
		for _, start := range starts {
			f := profiletest.New().Process(7, "writer")
			f.Profile.SetTime(pcommon.Timestamp(start))
			f.Sample(1, []string{"f"})
			gather(made, f.Profiles)
		}
		p := written(t, made)
		require.EqualValues(t, 1e9, p.TimeNanos, starts)
		require.EqualValues(t, 3e9+5e9-1e9, p.DurationNanos, starts)
	}
}

// TestPprofDefaultType: pprof begins with time off the CPU where there is no other, whichever
// comes first.
func TestPprofDefaultType(t *testing.T) {
	made := New(MaxBytes)
	require.Equal(t, "cpu", made.Profile().DefaultSampleType)
	gather(made, profiletest.Absences().Profiles)
	require.Equal(t, "off_cpu", written(t, made).DefaultSampleType)
	gather(made, profiletest.Tenants().Profiles)
	require.Equal(t, "cpu", written(t, made).DefaultSampleType)
	gather(made, profiletest.Absences().Profiles)
	require.Equal(t, "cpu", written(t, made).DefaultSampleType)

	alone := New(MaxBytes)
	alone.OffCPU()
	gather(alone, profiletest.Tenants().Profiles) // its callers say of no sample that it is off the CPU
	require.Equal(t, "off_cpu", written(t, alone).DefaultSampleType)
}

// Time off the CPU has sample types of its own, which the samples before it have, too.
func TestPprofOffCPU(t *testing.T) {
	made := New(MaxBytes)
	gather(made, profiletest.Tenants().Profiles)
	gather(made, profiletest.Absences().Profiles)
	p := written(t, made)
	require.Equal(t, "absences", p.SampleType[2].Type)
	require.Equal(t, "off_cpu", p.SampleType[3].Type)
	require.Equal(t, "nanoseconds", p.SampleType[3].Unit)
	require.Equal(t, "cpu", p.DefaultSampleType)
	require.EqualValues(t, profiletest.PeriodNs, p.Period)
	require.Equal(t, []int64{40, 40 * profiletest.PeriodNs, 0, 0}, p.Sample[0].Value)
	last := p.Sample[len(p.Sample)-1]
	require.Equal(t, []int64{0, 0, 1, 1e9}, last.Value)
	require.Equal(t, []string{"runnable"}, last.Label["custom_labels.thread_state"])
	require.Equal(t, "__schedule", last.Location[0].Line[0].Function.Name)
}
