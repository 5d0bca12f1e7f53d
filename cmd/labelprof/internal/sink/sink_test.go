// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/table"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// byTenant is a sink with a table, and a pprof file if one is wanted.
func byTenant(p *pprof.Builder) *Sink {
	return New(Config{Table: table.New([]string{"tenant"}), Pprof: p})
}

func shown(s *Sink) string {
	var b bytes.Buffer
	s.Show(&b, table.View{Rows: 20, Functions: 5})
	return b.String()
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

	s := New(Config{TruthFiles: []string{truthful, silent, broken, filepath.Join(dir, "missing")}, Table: table.New([]string{"tenant"})})
	f := profiletest.Tenants()
	f.Process(7, "writer")
	f.Sample(10, []string{"start"}) // without labels
	s.Consume(f.Profiles)
	out := shown(s)
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

func TestMalformedSamplesAreCounted(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	f.Sample(1, []string{"good"}, "tenant", "acme")
	f.Sample(1, nil).SetStackIndex(99)
	f.Sample(1, nil).SetStackIndex(-1)
	f.Sample(1, nil).AttributeIndices().Append(99)
	f.Sample(1, nil).AttributeIndices().Append(-1)
	f.Sample(1, nil).SetLinkIndex(7)
	f.Sample(0, nil).Values().Append(-1)
	f.Sample(0, nil).Values().Append(1 << 62)
	f.Sample(0, nil).Values().Append(1<<50, 1<<50, 1<<50)
	broken := f.Sample(1, []string{"f"})
	f.Dict.StackTable().At(int(broken.StackIndex())).LocationIndices().Append(1000)
	f.Sample(1, []string{"g"})
	last := f.Dict.LocationTable().At(f.Dict.LocationTable().Len() - 1)
	last.SetMappingIndex(-5)
	f.Sample(1, []string{"h"})
	last = f.Dict.LocationTable().At(f.Dict.LocationTable().Len() - 1)
	last.Lines().At(0).SetFunctionIndex(1 << 30)
	f.Process(8, "off-cpu").Profile.SampleType().SetTypeStrindex(f.Text("off_cpu"))
	f.Sample(5, []string{"f"})

	p := pprof.New(pprof.MaxBytes)
	s := byTenant(p)
	s.Consume(f.Profiles)
	require.Len(t, p.Profile().Sample, 1)
	out := shown(s)
	require.Contains(t, out, " in 1 samples of ")
	require.Contains(t, out, "! 11 malformed samples ignored\n")
	require.Contains(t, out, "! 1 profiles that are neither of CPU time nor off-CPU ignored\n")
}

// failingOnce stands for a disk that has room again after a write that it cut.
type failingOnce struct {
	bytes.Buffer
	failed bool
}

func (f *failingOnce) Write(b []byte) (int, error) {
	if !f.failed {
		f.failed = true
		return 0, errors.New("no room")
	}
	return f.Buffer.Write(b)
}

// Nothing follows a batch that is cut off: its readers could not find where the next
// begins. What is not written is counted.
func TestOTLPFileEndsWhereItFails(t *testing.T) {
	var file failingOnce
	s := New(Config{OTLP: &file})
	for range 3 {
		s.Consume(profiletest.Tenants().Profiles)
	}
	require.EqualValues(t, 3, s.unwritten)
	require.Zero(t, file.Len())
	require.Contains(t, s.Notes(), "3 batches not in the OTLP file")
	require.Equal(t, "3 batches not in the OTLP file", s.OTLPNote())

	file = failingOnce{failed: true}
	s = New(Config{OTLP: &file})
	s.otlpBytes = maxOTLPBytes + 1
	s.Consume(pprofile.NewProfiles())
	require.EqualValues(t, 1, s.unwritten)
	require.Zero(t, file.Len())
	require.Equal(t, "1 batches not in the OTLP file: it is full, with 1 GiB", s.OTLPNote())
	require.Contains(t, s.Notes(), s.OTLPNote())
}

// brokenFile stands for a disk that is full.
type brokenFile struct{}

func (brokenFile) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestOTLPFileThatFails(t *testing.T) {
	s := New(Config{Table: table.New([]string{"tenant"}), OTLP: brokenFile{}})
	s.Consume(profiletest.Tenants().Profiles)
	s.Consume(profiletest.Tenants().Profiles)
	require.Contains(t, shown(s), " in 200 samples of ")
	require.EqualValues(t, 2, s.unwritten)
	require.ErrorIs(t, s.CloseOTLP(), io.ErrShortWrite)
}

// TestGiveUp: of a batch that takes too long nothing more goes anywhere, and that is counted.
func TestGiveUp(t *testing.T) {
	store := samplestore.New(1 << 20)
	s := New(Config{Table: table.New([]string{"tenant"}), Pprof: pprof.New(pprof.MaxBytes), Store: store})
	s.take(func(visit func(*sample.Sample)) sample.Batch {
		return otlp.Walk(profiletest.Tenants().Profiles, func(entry *sample.Sample) {
			visit(entry)
			s.GiveUp()
		})
	})
	s.Consume(profiletest.Tenants().Profiles)
	require.Contains(t, shown(s), " in 40 samples of ")
	require.EqualError(t, s.PprofLacks(), "160 samples not in the pprof file: it took too long when the command was to end")
	require.Contains(t, s.Notes(), "160 samples not taken in: it took too long when the command was to end")
	require.EqualValues(t, 40, store.Status().Received)
	require.Equal(t, 1, s.cfg.Pprof.Samples())
}
