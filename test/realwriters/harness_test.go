//go:build linux && (amd64 || arm64)

package realwriters

import (
	"context"
	"encoding/hex"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/conformance"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A hit is one timestamp of one sample.
type hit struct {
	timeUnixNano uint64
	pid          int64
	resource     map[string]string
	attrs        map[string]string
	traceID      string // lower-case hex; "" without a link
	spanID       string
}

// A sink is the next consumer: it keeps the hits of all processes but this one.
type sink struct {
	t    *testing.T
	mu   sync.Mutex
	hits []hit
}

func (s *sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *sink) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	for _, err := range conformance.Check(p) {
		assert.NoError(s.t, err, "conformance")
		break
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rp := range p.ResourceProfiles().All() {
		of := hit{resource: map[string]string{}}
		for key, value := range rp.Resource().Attributes().All() {
			of.resource[key] = value.AsString()
		}
		if pid, ok := rp.Resource().Attributes().Get("process.pid"); ok {
			of.pid = pid.Int()
		}
		for _, sp := range rp.ScopeProfiles().All() {
			for _, profile := range sp.Profiles().All() {
				s.add(p.Dictionary(), profile, of)
			}
		}
	}
	return nil
}

func (s *sink) add(dict pprofile.ProfilesDictionary, profile pprofile.Profile, of hit) {
	for _, sample := range profile.Samples().All() {
		h := of
		h.attrs = map[string]string{}
		for _, i := range sample.AttributeIndices().All() {
			kv := dict.AttributeTable().At(int(i))
			h.attrs[dict.StringTable().At(int(kv.KeyStrindex()))] = kv.Value().AsString()
		}
		if i := sample.LinkIndex(); i != 0 {
			link := dict.LinkTable().At(int(i))
			traceID, spanID := link.TraceID(), link.SpanID()
			h.traceID, h.spanID = hex.EncodeToString(traceID[:]), hex.EncodeToString(spanID[:])
		}
		for _, at := range sample.TimestampsUnixNano().All() {
			h.timeUnixNano = at
			s.hits = append(s.hits, h)
		}
	}
}

// of returns the hits of a process.
func (s *sink) of(pid int) (hits []hit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hits {
		if h.pid == int64(pid) {
			hits = append(hits, h)
		}
	}
	return hits
}

// startReceiver runs the receiver until stop is called, at the latest at the end of the test.
func startReceiver(t *testing.T, out *sink, change func(*customlabelsreceiver.Config)) (stop func()) {
	t.Helper()
	testutil.RequireBPF(t)
	factory := customlabelsreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig().(*customlabelsreceiver.Config)
	change(cfg)
	require.NoError(t, cfg.Validate())
	set := receivertest.NewNopSettings(factory.Type())
	set.TelemetrySettings = componenttest.NewNopTelemetrySettings()
	set.Logger = zaptest.NewLogger(t)
	r, err := factory.(xreceiver.Factory).CreateProfiles(t.Context(), set, cfg, out)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	var once sync.Once
	stop = func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			require.NoError(t, r.Shutdown(ctx))
		})
	}
	t.Cleanup(stop)
	return stop
}

// monoToUnix is what turns CLOCK_MONOTONIC into Unix time now, in ns: by the closest of
// some readings, because a busy machine may interrupt any of them.
func monoToUnix(t *testing.T) uint64 {
	var offset uint64
	closest := time.Duration(math.MaxInt64)
	for range 20 {
		var before, real, after unix.Timespec
		require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &before))
		require.NoError(t, unix.ClockGettime(unix.CLOCK_REALTIME, &real))
		require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &after))
		if took := time.Duration(after.Nano() - before.Nano()); took < closest {
			closest = took
			offset = uint64(real.Nano() - before.Nano() - int64(took)/2)
		}
	}
	return offset
}
