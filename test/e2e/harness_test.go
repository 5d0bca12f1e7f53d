//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// prefix of custom labels in the output, by default.
const prefix = "process.context.label."

// A running receiver and where its metrics go.
type running struct {
	t         *testing.T
	receiver  xreceiver.Profiles
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
	stopped   bool
}

// startReceiver runs the receiver as the collector would, with out as next consumer. What no
// key says is set by derived.
func startReceiver(
	t *testing.T, out xconsumer.Profiles, change func(*customlabelsreceiver.Config), derived ...func(*pipeline.Options),
) *running {
	t.Helper()
	testutil.RequireBPF(t)
	factory := customlabelsreceiver.NewFactoryWith(func(o *pipeline.Options) {
		// Nothing is to be dropped, however busy the machine.
		o.Batches.MaxPending, o.ShutdownPatience = 64, time.Minute
		for _, set := range derived {
			if set != nil {
				set(o)
			}
		}
	})
	cfg := factory.CreateDefaultConfig().(*customlabelsreceiver.Config)
	change(cfg)
	require.NoError(t, confmap.Validate(cfg))
	r := &running{t: t, telemetry: componenttest.NewTelemetry()}
	set := receivertest.NewNopSettings(factory.Type())
	set.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	core, logs := observer.New(zapcore.InfoLevel)
	r.logs = logs
	set.Logger = zaptest.NewLogger(t, zaptest.WrapOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewTee(c, core)
	})))
	var err error
	r.receiver, err = factory.(xreceiver.Factory).CreateProfiles(context.Background(), set, cfg, out)
	require.NoError(t, err)
	require.NoError(t, r.receiver.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(r.stop)
	return r
}

// slowConsumer leaves room for what waits for a consumer that takes each batch of a whole busy host apart.
func slowConsumer(o *pipeline.Options) { o.Batches.MaxPending, o.ShutdownPatience = 1024, time.Minute }

// slowConsumerMemory is as much as that may take.
const slowConsumerMemory = 4 << 30

// manySets leaves room for samples that have a label set each, at any rate.
func manySets(o *pipeline.Options) {
	o.Labels.Budgets.Sets, o.Labels.Budgets.Values, o.Labels.Budgets.Bytes = 1<<20, 1<<20, 256<<20
}

// stop shuts the receiver down; everything sampled has reached the sink then.
func (r *running) stop() {
	if r.stopped {
		return
	}
	r.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	require.NoError(r.t, r.receiver.Shutdown(ctx))
	require.NoError(r.t, r.telemetry.Shutdown(ctx))
}

// account is what the receiver says at its end became of every hit.
func (r *running) account() map[string]int64 { return r.accountOf(profileCPU) }

// switchAccount is what it says of every switch.
func (r *running) switchAccount() map[string]int64 { return r.accountOf(profileOffCPU) }

// What logs and metrics call the two kinds of profiles.
const (
	profileCPU    = "cpu"
	profileOffCPU = "off_cpu"
)

func (r *running) accountOf(kind string) map[string]int64 {
	entries := r.logs.FilterMessage("Sampling has ended.").FilterField(zap.String("profile", kind)).All()
	require.Len(r.t, entries, 1)
	account := map[string]int64{}
	for name, n := range entries[0].ContextMap() {
		if name != "profile" {
			account[name] = n.(int64)
		}
	}
	return account
}

// metric sums the data points of a metric of the receiver, by the values of attributes with /
// between them; of those by profile, only the samples of CPU time. Of what has not happened yet there are none.
func (r *running) metric(name string, by ...string) map[string]int64 {
	return r.metricOf(profileCPU, name, by...)
}

func (r *running) metricOf(kind, name string, by ...string) map[string]int64 {
	sums := map[string]int64{}
	m, err := r.telemetry.GetMetric("otelcol_receiver_custom_labels_" + name)
	if err != nil {
		documented, err := os.ReadFile("../../receiver/customlabelsreceiver/documentation.md")
		require.NoError(r.t, err)
		require.Contains(r.t, string(documented), "### otelcol_receiver_custom_labels_"+name+"\n")
		return sums
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		addPoints(sums, data.DataPoints, kind, by)
	case metricdata.Sum[float64]:
		addPoints(sums, data.DataPoints, kind, by)
	case metricdata.Gauge[int64]:
		addPoints(sums, data.DataPoints, kind, by)
	}
	return sums
}

// addPoints adds the points of a profile to sums by attributes, each as a whole number.
func addPoints[N int64 | float64](sums map[string]int64, points []metricdata.DataPoint[N], kind string, by []string) {
	for _, p := range points {
		if of, ok := p.Attributes.Value("profile"); ok && of.AsString() != kind {
			continue
		}
		var values []string
		for _, key := range by {
			v, _ := p.Attributes.Value(attribute.Key(key))
			values = append(values, v.String())
		}
		sums[strings.Join(values, "/")] += int64(p.Value)
	}
}

// monoToUnix is what turns CLOCK_MONOTONIC into Unix time now: by the closest of some
// readings, because a busy machine may interrupt any of them.
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
