// SPDX-License-Identifier: Apache-2.0

package pagestore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// TestLabelsCannotPass: what the kernel says of a process stays, whatever a program publishes.
func TestLabelsCannotPass(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	f.Sample(1, []string{"f"}, sample.LabelPrefix+sample.KeyPID, "1", sample.LabelPrefix+sample.KeyProcessName, "init", sample.LabelPrefix+"bad\xff", "\xfe", sample.LabelPrefix+"service.name", "mine")
	store := samplestore.New(1 << 20)
	Add(store, func(visit func(*sample.Sample)) sample.Batch { return otlp.Walk(f.Profiles, visit) })
	labels := map[string]string{}
	store.Export(&samplestore.Query{}, func(e *samplestore.Entry) {
		for _, l := range e.Labels {
			labels[l.Key] = l.Value
		}
	})
	require.Equal(t, map[string]string{
		sample.KeyPID: "7", sample.KeyProcessName: "writer", sample.LabelPrefix + sample.KeyPID: "1", sample.LabelPrefix + sample.KeyProcessName: "init",
		`bad\xff`: `\xfe`, "service.name": "mine",
	}, labels)
}
