// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/input"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pagestore"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/table"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// TestOffCPU: off-CPU time is on the page, and apart from CPU time in the tables.
func TestOffCPU(t *testing.T) {
	f := profiletest.Tenants()
	f.Process(9, "sleeper")
	f.Profile.SampleType().SetTypeStrindex(f.Text("off_cpu"))
	f.Profile.SampleType().SetUnitStrindex(f.Text("nanoseconds"))
	f.Profile.SetPeriod(0)
	f.Sample(2, []string{"sleep"}).Values().Append(5e6, 7e6)
	last := f.Dict.LocationTable().At(f.Dict.LocationTable().Len() - 1)
	last.AttributeIndices().Append(f.Attribute("profile.frame.type", func(v pcommon.Value) { v.SetStr("native") }))
	store := samplestore.New(1 << 20)
	s := New(Config{Store: store, Table: table.New([]string{"tenant"})})
	s.Consume(f.Profiles)
	require.Contains(t, shown(s), " in 100 samples of ")
	require.Contains(t, shown(s), " in 2 absences\n")
	v := store.Query(&samplestore.Query{Kind: samplestore.OffCPU})
	require.EqualValues(t, 12e6, v.Ns[0])
	require.EqualValues(t, 2, v.Hits[0])
	require.Equal(t, samplestore.Frame{Name: "sleep", Module: "/usr/bin/program", Type: "native"}, v.Functions[0].Frame)
	require.EqualValues(t, 100, store.Query(&samplestore.Query{}).Hits[0])
	require.NotContains(t, s.Notes(), "off-CPU")
}

// TestTimesThatAreCut: sums that lack time say so, in the tables and on the page.
func TestTimesThatAreCut(t *testing.T) {
	f := profiletest.Absences()
	f.Absence(sample.MaxNs+1, "sleep")
	s := New(Config{Table: table.New([]string{"tenant"})})
	s.Consume(f.Profiles)
	const note = "1 times of more than 13 days cut to that: sums are too small"
	require.Contains(t, shown(s), "! "+note+"\n")
	require.Contains(t, s.StoreNotes(), note)
}

// TestKernelKeys: the table and the page say the same of a process, and that is what the
// kernel says.
func TestKernelKeys(t *testing.T) {
	f := profiletest.New().Process(7, "evil")
	f.Profiles.ResourceProfiles().At(0).Resource().Attributes().PutStr("container.id", "attacker")
	f.Sample(3, []string{"f"}, sample.KeyPID, "4242", sample.KeyProcessName, "postgres", sample.LabelPrefix+"container.id", "victim", "tenant", "acme")
	by := []string{sample.KeyPID, sample.KeyProcessName, "container.id", "tenant"}
	store := samplestore.New(1 << 20)
	s := New(Config{Store: store, Table: table.New(by)})
	s.Consume(f.Profiles)
	require.Regexp(t, `(?m)^  7 +evil +attacker +acme +0\.15 s `, shown(s))
	values := map[string][]samplestore.FacetValue{}
	for _, facet := range store.Query(&samplestore.Query{First: by}).Facets {
		values[facet.Key] = facet.Values
	}
	for i, want := range []string{"7", "evil", "attacker", "acme"} {
		require.Equal(t, []samplestore.FacetValue{{Text: want, Ns: 3 * profiletest.PeriodNs}}, values[by[i]])
	}
}

// TestPprofOfBoth: a pprof file of ours keeps both kinds of time.
func TestPprofOfBoth(t *testing.T) {
	from := New(Config{Pprof: pprof.New(pprof.MaxBytes)})
	from.Consume(profiletest.Tenants().Profiles)
	from.Consume(profiletest.Absences().Profiles)
	dir := t.TempDir()
	file := filepath.Join(dir, "both.pb.gz")
	require.NoError(t, from.WritePprof(file))
	store := samplestore.New(1 << 20)
	s := New(Config{Store: store, Table: table.New([]string{"tenant"})})
	require.NoError(t, input.NewDecoder(64<<20).ReadFiles(t.Context(), []string{file}, s))
	on, off := store.Query(&samplestore.Query{}), store.Query(&samplestore.Query{Kind: samplestore.OffCPU})
	require.Equal(t, []int64{100, 100 * profiletest.PeriodNs}, []int64{on.Hits[0], on.Ns[0]})
	require.Equal(t, []int64{3, 4e9}, []int64{off.Hits[0], off.Ns[0]})
	require.Contains(t, shown(s), " in 3 absences\n")
	require.Zero(t, s.malformed)

	// What the page gives of one kind, it reads again.
	var b bytes.Buffer
	require.NoError(t, pagestore.WriteProfile(&b, store, &samplestore.Query{Kind: samplestore.OffCPU}))
	selected := filepath.Join(dir, "selected.pb.gz")
	require.NoError(t, os.WriteFile(selected, b.Bytes(), 0o600))
	again := samplestore.New(1 << 20)
	require.NoError(t, input.NewDecoder(64<<20).ReadFiles(t.Context(), []string{selected}, New(Config{Store: again})))
	off = again.Query(&samplestore.Query{Kind: samplestore.OffCPU})
	require.Equal(t, []int64{3, 4e9}, []int64{off.Hits[0], off.Ns[0]})
	require.Zero(t, again.Query(&samplestore.Query{}).Hits[0])
}
