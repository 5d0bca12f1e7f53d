package customlabelsreceiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
)

// twoSignals are the receivers of both signals of one configuration.
type twoSignals struct {
	*fakes
	all               *receivers
	profiles, metrics component.Component
	profileSink       consumertest.ProfilesSink
	metricSink        consumertest.MetricsSink
	hosts             [2]*statusHost
}

func newTwoSignals(t *testing.T, cfg *Config) *twoSignals {
	t.Helper()
	s := &twoSignals{fakes: &fakes{}, hosts: [2]*statusHost{newStatusHost(), newStatusHost()}}
	s.all = newReceivers(s.newEngine)
	var err error
	s.profiles, err = s.all.createProfiles(t.Context(), nopSettings(), cfg, &s.profileSink)
	require.NoError(t, err)
	s.metrics, err = s.all.createMetrics(t.Context(), nopSettings(), cfg, &s.metricSink)
	require.NoError(t, err)
	return s
}

// Both signals of a configuration share one pipeline. It runs while both are started, in
// whatever order that is, since only then both have all that comes next.
func TestSignalsShareOnePipeline(t *testing.T) {
	for _, order := range []string{"profiles first", "metrics first"} {
		t.Run(order, func(t *testing.T) {
			s := newTwoSignals(t, defaultConfig())
			first, second := s.profiles, s.metrics
			if order == "metrics first" {
				first, second = second, first
			}
			require.NoError(t, first.Start(t.Context(), s.hosts[0]))
			require.Empty(t, s.made, "the consumers of the other signal may not be there yet")
			require.ErrorIs(t, first.Start(t.Context(), s.hosts[0]), errStarted)
			require.NoError(t, second.Start(t.Context(), s.hosts[1]))
			require.Len(t, s.made, 1)

			s.made[0].report(pipeline.ConcernMetrics, errTest)
			for _, h := range s.hosts {
				require.Len(t, h.events, 1)
				require.Equal(t, componentstatus.StatusRecoverableError, h.events[0].Status())
			}
			require.NoError(t, first.Shutdown(t.Context()))
			require.EqualValues(t, 1, s.made[0].shutdowns.Load())
			require.Len(t, s.profileSink.AllProfiles(), 1, "both are flushed while both have their consumers")
			require.Len(t, s.metricSink.AllMetrics(), 1)
			require.NoError(t, second.Shutdown(t.Context()))
			require.EqualValues(t, 1, s.made[0].shutdowns.Load())
			require.Empty(t, s.all.byConfig)

			require.NoError(t, second.Start(t.Context(), s.hosts[1]))
			require.NoError(t, first.Start(t.Context(), s.hosts[0]))
			require.Len(t, s.made, 2, "started again")
			require.NoError(t, second.Shutdown(t.Context()))
			require.NoError(t, first.Shutdown(t.Context()))
		})
	}
}

// A signal whose engine has ended with another one, as with a partial reload of the collector, says that it gives
// nothing any more; one that is shut down soon, too, says nothing.
func TestSignalIsLeft(t *testing.T) {
	for _, left := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newTwoSignals(t, defaultConfig())
			require.NoError(t, s.profiles.Start(t.Context(), s.hosts[0]))
			require.NoError(t, s.metrics.Start(t.Context(), s.hosts[1]))
			require.NoError(t, s.metrics.Shutdown(t.Context()))
			time.Sleep(leftAfter - 1)
			of := s.profiles.(*signal).of
			of.mu.Lock()
			early := len(s.hosts[0].events)
			of.mu.Unlock()
			require.Zero(t, early)
			if !left {
				require.NoError(t, s.profiles.Shutdown(t.Context()))
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			require.Empty(t, s.hosts[1].events)
			if !left {
				require.Empty(t, s.hosts[0].events)
				return
			}
			require.Len(t, s.hosts[0].events, 1)
			require.Equal(t, componentstatus.StatusPermanentError, s.hosts[0].events[0].Status())
			require.ErrorIs(t, s.hosts[0].events[0].Err(), errLeft)
			require.NoError(t, s.profiles.Shutdown(t.Context()))
		})
	}
}

// Signals that were started again in time go on.
func TestSignalsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTwoSignals(t, defaultConfig())
		require.NoError(t, s.profiles.Start(t.Context(), s.hosts[0]))
		require.NoError(t, s.metrics.Start(t.Context(), s.hosts[1]))
		require.NoError(t, s.metrics.Shutdown(t.Context()))
		require.NoError(t, s.metrics.Start(t.Context(), s.hosts[1]))
		time.Sleep(leftAfter + 1)
		synctest.Wait()
		require.Empty(t, s.hosts[0].events)
		require.NoError(t, s.metrics.Shutdown(t.Context()))
		require.NoError(t, s.profiles.Shutdown(t.Context()))
	})
}

// The end of the collector leaves no timer behind.
func TestShutdownEndsAll(t *testing.T) {
	s := newTwoSignals(t, defaultConfig())
	require.NoError(t, s.profiles.Start(t.Context(), s.hosts[0]))
	require.NoError(t, s.metrics.Start(t.Context(), s.hosts[1]))
	require.NoError(t, s.metrics.Shutdown(t.Context()))
	require.NoError(t, s.profiles.Shutdown(t.Context()))
	require.False(t, s.profiles.(*signal).of.left.Stop(), "it has been stopped")
}

// Two configurations have nothing in common, nor have two receivers of one signal.
func TestConfigurationsShareNothing(t *testing.T) {
	s := newTwoSignals(t, defaultConfig())
	other, err := s.all.createMetrics(t.Context(), nopSettings(), defaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, other.Start(t.Context(), newStatusHost()))
	require.Len(t, s.made, 1)
	require.Nil(t, s.made[0].next.Profiles)
	require.NoError(t, other.Shutdown(t.Context()))

	cfg := defaultConfig()
	for range 2 {
		same, err := s.all.createProfiles(t.Context(), nopSettings(), cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, same.Start(t.Context(), newStatusHost()))
		defer func() { require.NoError(t, same.Shutdown(t.Context())) }()
	}
	require.Len(t, s.made, 3)
}

// An error at the start is the last signal's, or, if it is to be ignored, in the status of all.
func TestSignalsStartError(t *testing.T) {
	s := newTwoSignals(t, defaultConfig())
	s.startErr = errTest
	require.NoError(t, s.profiles.Start(t.Context(), s.hosts[0]))
	require.ErrorIs(t, s.metrics.Start(t.Context(), s.hosts[1]), errTest)
	require.NoError(t, s.metrics.Shutdown(t.Context()))
	require.NoError(t, s.profiles.Shutdown(t.Context()))
	require.Zero(t, s.made[0].shutdowns.Load())

	cfg := defaultConfig()
	cfg.ErrorMode = ErrorModeIgnore
	s = newTwoSignals(t, cfg)
	s.makeErr = errTest
	require.NoError(t, s.profiles.Start(t.Context(), s.hosts[0]))
	require.NoError(t, s.metrics.Start(t.Context(), s.hosts[1]))
	for _, h := range s.hosts {
		require.Len(t, h.events, 1)
		require.Equal(t, componentstatus.StatusPermanentError, h.events[0].Status())
	}
	require.NoError(t, s.metrics.Shutdown(t.Context()))
	require.NoError(t, s.profiles.Shutdown(t.Context()))
}

func TestObservedMetrics(t *testing.T) {
	tt := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tt.Shutdown(t.Context())) }()
	set := settingsOf(tt, "a")
	good, err := newObservedMetrics(set, new(consumertest.MetricsSink))
	require.NoError(t, err)
	require.NoError(t, good.ConsumeMetrics(t.Context(), threePoints()))
	bad, err := newObservedMetrics(set, consumertest.NewErr(errTest))
	require.NoError(t, err)
	require.ErrorIs(t, bad.ConsumeMetrics(t.Context(), threePoints()), errTest)
	requireSum(t, tt, "otelcol_receiver_accepted_metric_points", 3)
	requireSum(t, tt, "otelcol_receiver_refused_metric_points", 3)
}
