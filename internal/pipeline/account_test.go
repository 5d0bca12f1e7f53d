//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// The limit of BPF maps is reached when unwind rows have no room, which have a part of it.
func TestLimitUsedByRows(t *testing.T) {
	testutil.RequireBPF(t)
	p, err := New(Options{Next: Consumers{Profiles: consumertest.NewNop()}})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Shutdown(context.Background())) }()
	used := func(rows int) float64 {
		var s Snapshot
		var table process.Stats
		table.Rows.Bytes = rows
		p.snapshotLimits(&s, &table)
		return s.LimitUsed[LimitBPFMaps]
	}
	whole := float64(p.sampler.MapBytes()) / float64(p.options.Limits.BPFMapBytes)
	require.InDelta(t, whole, used(0), 1e-9)
	require.Less(t, whole, 0.9)
	require.InDelta(t, 1, used(p.options.Unwind.MaxBytes), 1e-9)
}
