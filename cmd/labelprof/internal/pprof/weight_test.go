// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"runtime"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"
)

func TestPprofWeight(t *testing.T) {
	const n = 50_000
	for name, data := range profiletest.PprofBombs(n) {
		estimated, err := weight.Estimate(data, shape(), 1<<62)
		require.NoError(t, err, name)
		before := profiletest.Live()
		p, err := profile.ParseUncompressed(data)
		require.NoError(t, err, name)
		_ = p.CheckValid()
		Walk(p, func(*sample.Sample) {})
		took := profiletest.Live() - before
		require.LessOrEqual(t, took, estimated+1<<20, name)
		t.Logf("%-20s %8d bytes take %9d, estimated %9d", name, len(data), took, estimated)
		runtime.KeepAlive(p)
	}
}
