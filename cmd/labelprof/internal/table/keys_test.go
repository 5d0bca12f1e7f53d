// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// TestMissingKeys: a key that no sample has is named, with those that could be meant.
func TestMissingKeys(t *testing.T) {
	f := profiletest.Tenants()
	require.Equal(t, []string{
		"no sample has the key tenent; there are route, tenant, process.executable.name, process.pid, service.name",
		"no sample has the key x; there are route, tenant, process.executable.name, process.pid, service.name",
	}, filled(f.Profiles, "tenent", "service.name", "x").Notes())
	for _, by := range []string{"tenant", sample.KeyPID, sample.KeyTraceID, sample.LabelPrefix + "route"} {
		require.Empty(t, filled(f.Profiles, by).Notes(), by)
	}
	require.Empty(t, filled(profiletest.New().Profiles, "x").Notes(), "there is nothing to have keys")

	found := filled(f.Profiles, "x")
	require.Contains(t, shown(found, View{Notes: []string{"no sample has the key \x1b"}}), "! no sample has the key \\x1b\n")
}

// TestMissingKeysAreBounded: who publishes any number of keys, or long ones, has no long note.
func TestMissingKeysAreBounded(t *testing.T) {
	f := profiletest.New().Process(7, "evil")
	for i := range 2 * maxKeys {
		f.Sample(1, []string{"f"}, fmt.Sprintf("key%d", i), "v")
	}
	f.Sample(100, []string{"f"}, strings.Repeat("k", maxKeyBytes+1), "v", "often\xff", "v")
	found := New([]string{"x"})
	for range 3 {
		otlp.Walk(f.Profiles, found.Add)
	}
	require.LessOrEqual(t, len(found.keys.hits), maxKeys)
	notes := found.Notes()
	require.Len(t, notes, 1)
	require.Equal(t, maxKeysNamed, 1+strings.Count(notes[0], ", "))
	require.NotContains(t, notes[0], "kkk")
}
