// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/input"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/table"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

func FuzzReadFile(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add([]byte{0, 0, 0, 2, 0x0a, 0})
	f.Add([]byte{0x0a, 0})
	request, err := pprofileotlp.NewExportRequestFromProfiles(profiletest.Tenants().Profiles).MarshalProto()
	require.NoError(f, err)
	f.Add(request)
	for _, bomb := range profiletest.RequestBombs(50) {
		f.Add(bomb)
		f.Add(profiletest.Frame(bomb))
	}
	f.Add(profiletest.Nested(1000))
	f.Add([]byte(`{"resourceProfiles":[{},{},{"scopeProfiles":[{"profiles":[{"samples":[{},{},{}]}]}]}]}`))
	f.Add([]byte(`{"a":[[[[[[[[[[{{{{{{{{"`))
	file := filepath.Join(f.TempDir(), "file")
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(file, data, 0o600))
		p := pprof.New(pprof.MaxBytes)
		s := byTenant(p)
		_ = input.NewDecoder(64<<20).ReadFiles(t.Context(), []string{file}, s)
		s.Show(&bytes.Buffer{}, table.View{Rows: 20, Functions: 5})
		require.NoError(t, s.ShowJSON(&bytes.Buffer{}, table.View{Rows: 20, Functions: 5}))
		if !p.Empty() {
			require.NoError(t, p.Profile().CheckValid())
		}
	})
}

func FuzzReadPprof(f *testing.F) {
	seed := pprof.New(pprof.MaxBytes)
	otlp.Walk(profiletest.Tenants().Profiles, seed.Add)
	otlp.Walk(profiletest.Absences().Profiles, seed.Add)
	var b bytes.Buffer
	require.NoError(f, seed.Profile().WriteUncompressed(&b))
	f.Add(b.Bytes())
	for _, bomb := range profiletest.PprofBombs(50) {
		f.Add(bomb)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		decoded, err := pprof.NewDecoder(32 << 20).Decode(data)
		if err != nil {
			return
		}
		p, store := pprof.New(pprof.MaxBytes), samplestore.New(1<<20)
		New(Config{Store: store, Table: table.New([]string{"tenant"}), Pprof: p}).ConsumePprof(decoded)
		store.Query(&samplestore.Query{By: "tenant", Buckets: 10})
		require.NoError(t, p.Profile().CheckValid())
	})
}
