//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A pipeline needs no more than a consumer. What it has counted at the end stays, and every
// sample that it has emitted was handed over.
func TestPipeline(t *testing.T) {
	testutil.RequireBPF(t)
	sink := new(consumertest.ProfilesSink)
	p, err := New(Options{Next: Consumers{Profiles: sink}, SamplesPerSecond: 97, ReportInterval: 100 * time.Millisecond})
	require.NoError(t, err)
	forced := forcedCollections()
	require.NoError(t, p.Start(t.Context()))
	require.Eventually(t, func() bool { s := p.Snapshot(); return s.CPU().Emitted > 0 }, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return forcedCollections() > forced }, time.Minute, 10*time.Millisecond,
		"what loading has taken is given back")
	require.NoError(t, p.Shutdown(context.Background()))
	s := p.Snapshot()
	require.NotZero(t, s.Users)
	require.Zero(t, s.CPU().Pending())
	emitted := int64(0)
	for _, profiles := range sink.AllProfiles() {
		for _, rp := range profiles.ResourceProfiles().All() {
			for _, sample := range rp.ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
				emitted += int64(sample.TimestampsUnixNano().Len())
			}
		}
	}
	require.Equal(t, emitted, s.CPU().Emitted)
	require.NoError(t, p.Shutdown(context.Background()), "again")
	require.Equal(t, s, p.Snapshot())
}

func forcedCollections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumForcedGC
}

// What was loaded is released without a start, too; without a consumer nothing is.
func TestPipelineNotStarted(t *testing.T) {
	testutil.RequireBPF(t)
	p, err := New(Options{Next: Consumers{Metrics: consumertest.NewNop()}})
	require.NoError(t, err)
	require.NoError(t, p.Shutdown(context.Background()))
	s := p.Snapshot()
	require.Zero(t, s.CPU().Hits)
	require.NoError(t, p.Shutdown(context.Background()), "again")
	_, err = New(Options{})
	require.ErrorIs(t, err, errNoConsumer)
}
