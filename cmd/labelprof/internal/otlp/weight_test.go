// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"
)

const unlimited = 1 << 62

// looked is a dictionary of which everything has been looked up.
func looked(p pprofile.Profiles) *dictionary {
	d := newDictionary(p.Dictionary())
	for i := range p.Dictionary().LocationTable().Len() {
		d.location(int32(i))
	}
	for i := range p.Dictionary().AttributeTable().Len() {
		d.attribute(int32(i))
	}
	return d
}

// TestRequestWeight: nothing takes more memory than it was taken to.
func TestRequestWeight(t *testing.T) {
	const n = 50_000
	for name, data := range profiletest.RequestBombs(n) {
		estimated, err := weight.Estimate(data, requestShape(), unlimited)
		require.NoError(t, err, name)
		d := NewDecoder(unlimited)
		before := profiletest.Live()
		p, err := d.Request(data)
		require.NoError(t, err, name)
		dict := looked(p)
		took := profiletest.Live() - before
		require.LessOrEqual(t, took, estimated+1<<20, name)
		t.Logf("%-20s %8d bytes take %9d, estimated %9d", name, len(data), took, estimated)
		runtime.KeepAlive(dict)
		runtime.KeepAlive(p)
	}
}

func TestWeightOfJSON(t *testing.T) {
	const n = 50_000
	line := []byte(`{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"samples":[{}` + strings.Repeat(",{}", n) + `]}]}]}]}`)
	before := profiletest.Live()
	p, err := NewDecoder(unlimited).Line(line)
	require.NoError(t, err)
	took := profiletest.Live() - before
	require.Greater(t, took, int64(4<<20), "it does take memory")
	_, err = weight.EstimateJSON(line, took)
	require.Error(t, err)
	runtime.KeepAlive(p)
}

func TestNestedRequest(t *testing.T) {
	d := NewDecoder(unlimited)
	_, err := d.Request(profiletest.Nested(150))
	require.NoError(t, err)
	_, err = d.Request(profiletest.Nested(1000))
	require.ErrorIs(t, err, weight.ErrNested)
}
