//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
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

// What does not answer when names are read, and what does not when processes are, is waited for at the same time.
func TestShutdownWaitsOnce(t *testing.T) {
	testutil.RequireBPF(t)
	core, logged := observer.New(zap.WarnLevel)
	p, err := New(Options{Next: Consumers{Profiles: consumertest.NewNop()}, Logger: zap.New(core)})
	require.NoError(t, err)
	tableEnds, asked := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p.output.symbols.maps = symbol.NewPerfMaps[uint64](symbol.CacheOptions{Wait: time.Millisecond, Work: func(uint32, func()) {
		once.Do(func() { close(asked) }) // of others in the last batch, too
		<-tableEnds
	}})
	require.NoError(t, p.Start(t.Context()))
	p.output.symbols.maps.Lookup(nil, 1, mapSource{info: &process.Info{}}, 0, symbol.Native)
	<-asked
	stop := p.stopTable
	p.stopTable = func() { stop(); close(tableEnds) }
	require.NoError(t, p.Shutdown(context.Background()))
	require.Empty(t, logged.FilterMessageSnippet("read for names").All())
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

// Where CLOCK_MONOTONIC is not the one by which the kernel tells when samples were taken, there are none: their times
// would be wrong, and much besides.
func TestTimeNamespace(t *testing.T) {
	const within = "CUSTOM_LABELS_TEST_TIME_NAMESPACE"
	if os.Getenv(within) != "" {
		_, err := New(Options{Next: Consumers{Metrics: consumertest.NewNop()}})
		require.ErrorIs(t, err, errClock)
		require.ErrorContains(t, err, "it is 1h0m0s")
		return
	}
	testutil.Need(t, testutil.TimeNamespaces)
	cmd := exec.Command("unshare", "--time", "--monotonic", "3600", os.Args[0], "-test.run", "^TestTimeNamespace$", "-test.v")
	cmd.Env = append(os.Environ(), within+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: TestTimeNamespace")
}
