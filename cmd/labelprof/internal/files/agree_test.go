// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// packed are batches as a request of OTLP.
func packed(t *testing.T, profiles pprofile.Profiles) []byte {
	t.Helper()
	data, err := pprofileotlp.NewExportRequestFromProfiles(profiles).MarshalProto()
	require.NoError(t, err)
	return data
}

// below is a batch of CPU time in values of half a period.
func below() *profiletest.Batch {
	b := profiletest.New().Process(7, "writer")
	b.Profile.SampleType().SetTypeStrindex(b.Text("cpu"))
	b.Profile.SampleType().SetUnitStrindex(b.Text("nanoseconds"))
	b.Profile.SetPeriod(10e6)
	for range 100 {
		b.Sample(0, []string{"f"}, "tenant", "acme").Values().Append(5e6)
	}
	return b
}

// TestConversionsAgree: of a file and of its conversion to pprof, the tables say the same.
func TestConversionsAgree(t *testing.T) {
	truth := writeTemp(t, []byte(`{"pid": 7, "sets": [{"labels": {"tenant": "acme"}, "cpu_ns": 300}, {"labels": {"tenant": "globex"}, "cpu_ns": 100}]}`))
	evil := profiletest.New().Process(7, "evil")
	evil.Sample(3, []string{"f"}, sample.LabelPrefix+sample.KeyPID, "4242", sample.LabelPrefix+sample.KeyProcessName, "postgres")
	root := profiletest.New().Process(7, "evil")
	root.Profiles.ResourceProfiles().At(0).Resource().Attributes().PutInt("process.real_user.id", 0)
	root.Sample(3, []string{"f"}, sample.LabelPrefix+"process.real_user.id", "1000")
	linked := profiletest.Tenants()
	linked.Link(linked.Sample(5, []string{"f"}, sample.LabelPrefix+sample.KeyTraceID, "a label"), [16]byte{1}, [8]byte{2})
	for name, tc := range map[string]struct {
		of   *profiletest.Batch
		args []string
		want []string // is in both
	}{
		"truth":        {profiletest.Tenants(), []string{"--truth", truth}, []string{`"true_share": 0.75`, `"measured_share": 0.66`, `"sampled_cpu_ns": 4500000000`, `"traced_cpu_ns": 2000000000`}},
		"trace":        {linked, []string{"--by", "trace_id,span_id"}, []string{`"trace_id": "0a0b0c0000000000000000000000000d"`, `"span_id": "0405000000000000"`, `"span_id": "0200000000000000"`}},
		"processes":    {evil, []string{"--by", "process.pid,process.executable.name"}, []string{`"process.pid": "7"`, `"process.executable.name": "evil"`}},
		"root":         {root, []string{"--by", "process.real_user.id"}, []string{`"process.real_user.id": "0"`}},
		"services":     {profiletest.Tenants(), []string{"--by", "service.name"}, []string{`"service.name": "writer-service"`, `"service.name": "plain-service"`}},
		"off the CPU":  {profiletest.Absences(), nil, []string{`"name": "lock"`}},
		"below period": {below(), nil, []string{`"cpu_ns": 500000000`, `"samples": 100`}},
	} {
		file, converted := writeTemp(t, packed(t, tc.of.Profiles)), filepath.Join(t.TempDir(), "out.pb.gz")
		code, before, stderr := run("top", append([]string{"--json", file}, tc.args...)...)
		require.Zero(t, code, "%s: %s", name, stderr)
		code, _, stderr = run("pprof", "-o", converted, file)
		require.Zero(t, code, "%s: %s", name, stderr)
		code, after, stderr := run("top", append([]string{"--json", converted}, tc.args...)...)
		require.Zero(t, code, "%s: %s", name, stderr)
		require.JSONEq(t, before, after, name)
		for _, want := range tc.want {
			require.Contains(t, before, want, name)
		}
	}
}

// TestBelowPeriod: CPU time in values below the period is some, in a pprof file as well.
func TestBelowPeriod(t *testing.T) {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 10e6,
	}
	for range 100 {
		p.Sample = append(p.Sample, &profile.Sample{Value: []int64{5e6}, NumLabel: map[string][]int64{sample.KeyPID: {7}}})
	}
	var ofPprof bytes.Buffer
	require.NoError(t, p.Write(&ofPprof))
	for name, data := range map[string][]byte{"OTLP": packed(t, below().Profiles), "pprof": ofPprof.Bytes()} {
		file, converted := writeTemp(t, data), filepath.Join(t.TempDir(), "out.pb.gz")
		code, _, stderr := run("pprof", "-o", converted, file)
		require.Zero(t, code, "%s: %s", name, stderr)
		for _, f := range []string{file, converted} {
			code, stdout, stderr := run("top", f)
			require.Zero(t, code, "%s: %s", name, stderr)
			require.Contains(t, stdout, "0.50 s in 100 samples of 1 process\n", name)
		}
	}
}
