// SPDX-License-Identifier: Apache-2.0

package pagestore

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// storeOf is a store with a batch.
func storeOf(b *profiletest.Batch) *samplestore.Store {
	store := samplestore.New(1 << 20)
	Add(store, func(visit func(*sample.Sample)) sample.Batch { return otlp.Walk(b.Profiles, visit) })
	return store
}

// TestExportIsWhole: a profile has all that the page shows, or there is none.
func TestExportIsWhole(t *testing.T) {
	store := storeOf(profiletest.Tenants())
	some := []samplestore.Filter{{Key: "tenant", Values: []samplestore.Value{{Text: "acme", Present: true}}}}
	written := 0
	for maxBytes := 0; maxBytes < 10_000; maxBytes += 100 {
		for _, q := range []*samplestore.Query{{}, {Filters: some}} {
			var b bytes.Buffer
			if err := writeProfile(&b, store, q, maxBytes); err != nil {
				require.ErrorContains(t, err, "--max-memory")
				require.Zero(t, b.Len())
				continue
			}
			p, err := profile.Parse(&b)
			require.NoError(t, err)
			hits := int64(0)
			for _, s := range p.Sample {
				hits += s.Value[0]
			}
			v := store.Query(q)
			require.Equal(t, v.Hits.Sum(), hits, maxBytes)
			written++
		}
	}
	require.Positive(t, written)
	require.NoError(t, WriteProfile(&bytes.Buffer{}, store, &samplestore.Query{}))
}

// TestExportedLabels: no label is lost, and what the kernel says stays under its key.
func TestExportedLabels(t *testing.T) {
	const name = sample.LabelPrefix + sample.KeyProcessName
	f := profiletest.New().Process(7, "writer")
	for range 10 { // the store has labels that are frequent first
		f.Sample(1, []string{"f"}, sample.LabelPrefix+sample.KeyPID, "1", name, "init", "a", "x", sample.LabelPrefix+"a", "y")
	}
	f.Process(8, "other").Sample(1, []string{"f"}, sample.LabelPrefix+sample.KeyPID, "1", name, "init", "a", "x", sample.LabelPrefix+"a", "y")
	var b bytes.Buffer
	require.NoError(t, WriteProfile(&b, storeOf(f), &samplestore.Query{}))
	p, err := profile.Parse(&b)
	require.NoError(t, err)
	require.Len(t, p.Sample, 2)
	for i, pid := range []int64{7, 8} {
		require.Equal(t, map[string][]int64{sample.KeyPID: {pid}}, p.Sample[i].NumLabel)
		require.Equal(t, map[string][]string{
			"service.name": {[]string{"writer", "other"}[i] + "-service"}, sample.KeyProcessName: {[]string{"writer", "other"}[i]},
			sample.LabelPrefix + sample.KeyPID: {"1"}, name: {"init"}, "a": {"x"}, sample.LabelPrefix + "a": {"y"},
		}, p.Sample[i].Label)
	}
}
