package customlabelsreceiver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadata"
)

var errTest = errors.New("attach perf event: permission denied")

// fakeEngine delivers one batch when it is shut down, as a flush does.
type fakeEngine struct {
	next      pipeline.Consumers
	report    func(pipeline.Concern, error)
	startErr  error
	starts    atomic.Int32
	shutdowns atomic.Int32
}

func (p *fakeEngine) Start(context.Context) error {
	p.starts.Add(1)
	return p.startErr
}

func (p *fakeEngine) Shutdown(ctx context.Context) error {
	p.shutdowns.Add(1)
	var errs []error
	if p.next.Profiles != nil {
		errs = append(errs, p.next.Profiles.ConsumeProfiles(ctx, twoSamples()))
	}
	if p.next.Metrics != nil {
		errs = append(errs, p.next.Metrics.ConsumeMetrics(ctx, threePoints()))
	}
	return errors.Join(errs...)
}

func twoSamples() pprofile.Profiles {
	profiles := pprofile.NewProfiles()
	samples := profiles.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples()
	samples.AppendEmpty()
	samples.AppendEmpty()
	return profiles
}

func threePoints() pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	points := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptySum().DataPoints()
	for range 3 {
		points.AppendEmpty()
	}
	return metrics
}

// fakes makes engines and remembers them.
type fakes struct {
	made     []*fakeEngine
	makeErr  error
	startErr error
}

func (f *fakes) newEngine(_ *Config, _ receiver.Settings, next pipeline.Consumers, report func(pipeline.Concern, error)) (engine, error) {
	if f.makeErr != nil {
		return nil, f.makeErr
	}
	p := &fakeEngine{next: next, report: report, startErr: f.startErr}
	f.made = append(f.made, p)
	return p, nil
}

// statusHost collects what is reported.
type statusHost struct {
	component.Host
	events []*componentstatus.Event
}

func newStatusHost() *statusHost { return &statusHost{Host: componenttest.NewNopHost()} }

func (h *statusHost) Report(e *componentstatus.Event) { h.events = append(h.events, e) }

func newReceiver(t *testing.T, f *fakes, cfg *Config, set receiver.Settings, next xconsumer.Profiles) component.Component {
	t.Helper()
	r, err := newReceivers(f.newEngine).createProfiles(t.Context(), set, cfg, next)
	require.NoError(t, err)
	return r
}

func defaultConfig() *Config { return createDefaultConfig().(*Config) }

func nopSettings() receiver.Settings { return receivertest.NewNopSettings(metadata.Type) }

func TestReceiverLifecycle(t *testing.T) {
	f := new(fakes)
	sink := new(consumertest.ProfilesSink)
	host := newStatusHost()
	r := newReceiver(t, f, defaultConfig(), nopSettings(), sink)

	require.NoError(t, r.Shutdown(t.Context()), "before Start")
	require.Empty(t, f.made, "nothing is made before Start")

	require.NoError(t, r.Start(t.Context(), host))
	require.Len(t, f.made, 1)
	require.EqualValues(t, 1, f.made[0].starts.Load())
	require.ErrorIs(t, r.Start(t.Context(), host), errStarted)
	require.Len(t, f.made, 1)

	require.NoError(t, r.Shutdown(t.Context()))
	require.NoError(t, r.Shutdown(t.Context()))
	require.EqualValues(t, 1, f.made[0].shutdowns.Load(), "shutdown once")
	require.Len(t, sink.AllProfiles(), 1, "flushed on shutdown")
	require.Empty(t, host.events, "the collector reports start and stop itself")

	require.NoError(t, r.Start(t.Context(), host), "started again")
	require.Len(t, f.made, 2, "with a new engine")
	require.NoError(t, r.Shutdown(t.Context()))
	require.Len(t, sink.AllProfiles(), 2)
}

func TestReceiverTwoInstances(t *testing.T) {
	f := new(fakes)
	a := newReceiver(t, f, defaultConfig(), nopSettings(), consumertest.NewNop())
	b := newReceiver(t, f, defaultConfig(), nopSettings(), consumertest.NewNop())
	require.NoError(t, a.Start(t.Context(), newStatusHost()))
	require.NoError(t, b.Start(t.Context(), newStatusHost()))
	require.NoError(t, a.Shutdown(t.Context()))
	require.EqualValues(t, 1, f.made[0].shutdowns.Load())
	require.EqualValues(t, 0, f.made[1].shutdowns.Load(), "the other one goes on")
	require.NoError(t, b.Shutdown(t.Context()))
}

func TestReceiverStartError(t *testing.T) {
	for name, f := range map[string]*fakes{
		"made":    {makeErr: errTest},
		"started": {startErr: errTest},
	} {
		t.Run(name, func(t *testing.T) {
			host := newStatusHost()
			r := newReceiver(t, f, defaultConfig(), nopSettings(), consumertest.NewNop())
			require.ErrorIs(t, r.Start(t.Context(), host), errTest)
			require.Empty(t, host.events, "the collector reports what Start returns")
			require.NoError(t, r.Shutdown(t.Context()))
			for _, p := range f.made {
				require.Zero(t, p.shutdowns.Load(), "an engine that did not start is not shut down")
			}
		})
	}
}

func TestReceiverIgnoresError(t *testing.T) {
	for name, f := range map[string]*fakes{
		"made":    {makeErr: errTest},
		"started": {startErr: errTest},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zapcore.ErrorLevel)
			set := nopSettings()
			set.Logger = zap.New(core)
			cfg := defaultConfig()
			cfg.ErrorMode = ErrorModeIgnore
			host := newStatusHost()

			r := newReceiver(t, f, cfg, set, consumertest.NewNop())
			require.NoError(t, r.Start(t.Context(), host))

			require.Len(t, host.events, 1)
			require.Equal(t, componentstatus.StatusPermanentError, host.events[0].Status())
			require.ErrorIs(t, host.events[0].Err(), errTest)
			require.Equal(t, 1, logs.Len())
			require.Equal(t, errTest.Error(), logs.All()[0].ContextMap()["error"])
			require.NoError(t, r.Shutdown(t.Context()))
		})
	}
}

func TestReceiverStatusOnChangeOnly(t *testing.T) {
	f := new(fakes)
	host := newStatusHost()
	r := newReceiver(t, f, defaultConfig(), nopSettings(), consumertest.NewNop())
	require.NoError(t, r.Start(t.Context(), host))
	report := f.made[0].report

	report(pipeline.ConcernProfiles, nil)
	require.Empty(t, host.events, "well from the start")

	report(pipeline.ConcernProfiles, errTest)
	report(pipeline.ConcernProfiles, errors.New(errTest.Error()))
	require.Len(t, host.events, 1)
	require.Equal(t, componentstatus.StatusRecoverableError, host.events[0].Status())
	require.ErrorIs(t, host.events[0].Err(), errTest)

	report(pipeline.ConcernProfiles, errors.New("another one"))
	require.Len(t, host.events, 2)

	report(pipeline.ConcernProfiles, nil)
	report(pipeline.ConcernProfiles, nil)
	require.Len(t, host.events, 3)
	require.Equal(t, componentstatus.StatusOK, host.events[2].Status())

	require.NoError(t, r.Shutdown(t.Context()))
	report(pipeline.ConcernProfiles, errTest)
	require.Len(t, host.events, 3, "nothing after Shutdown")
}

// What recovers says nothing of what else is wrong: the worst of it is reported, OK when all is well.
func TestReceiverStatusByConcern(t *testing.T) {
	f := new(fakes)
	host := newStatusHost()
	r := newReceiver(t, f, defaultConfig(), nopSettings(), consumertest.NewNop())
	require.NoError(t, r.Start(t.Context(), host))
	report := f.made[0].report
	last := func(events int) error {
		t.Helper()
		require.Len(t, host.events, events)
		return host.events[events-1].Err()
	}
	cpus, metrics := errors.New("a CPU"), errors.New("metrics")

	report(pipeline.ConcernCPUs, cpus)
	require.ErrorIs(t, last(1), cpus)
	report(pipeline.ConcernMetrics, metrics)
	require.ErrorIs(t, last(1), cpus, "it is worse")
	report(pipeline.ConcernProfiles, errTest)
	require.ErrorIs(t, last(2), errTest)
	report(pipeline.ConcernProfiles, nil)
	require.ErrorIs(t, last(3), cpus, "the next one is reported again")
	report(pipeline.ConcernCPUs, nil)
	require.ErrorIs(t, last(4), metrics)
	report(pipeline.ConcernCPUs, nil)
	require.ErrorIs(t, last(4), metrics, "nothing has changed")
	report(pipeline.ConcernMetrics, nil)
	require.NoError(t, last(5))
	require.Equal(t, componentstatus.StatusOK, host.events[4].Status())

	report(pipeline.ConcernSamples, errTest)
	require.ErrorIs(t, last(6), errTest)
	require.Equal(t, componentstatus.StatusPermanentError, host.events[5].Status(), "it takes a new start")
	require.NoError(t, r.Shutdown(t.Context()))
}

func TestReceiverShutdownError(t *testing.T) {
	f := new(fakes)
	r := newReceiver(t, f, defaultConfig(), nopSettings(), consumertest.NewErr(errTest))
	require.NoError(t, r.Start(t.Context(), newStatusHost()))
	require.ErrorIs(t, r.Shutdown(t.Context()), errTest)
	require.NoError(t, r.Shutdown(t.Context()))
}
