//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A consumer whose context has ended is waited for leaveAfter in all, and not called again once it was left behind.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, said := observer.New(zap.WarnLevel)
		c := newCalls(zap.New(core), "profiles")
		refused := errors.New("refused")
		var running atomic.Int64
		called := 0
		call := func(ctx context.Context, takes time.Duration) (time.Duration, error) {
			called++
			began := time.Now()
			err := c.call(ctx, func() error {
				running.Add(1)
				defer running.Add(-1)
				time.Sleep(takes)
				return refused
			})
			return time.Since(began), err
		}
		took, err := call(t.Context(), time.Hour)
		require.ErrorIs(t, err, refused)
		require.Equal(t, time.Hour, took, "while its context goes on")

		const until, some = time.Second, 3 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), until)
		defer cancel()
		took, err = call(ctx, until+some)
		require.ErrorIs(t, err, refused)
		require.Equal(t, until+some, took)
		require.Empty(t, said.All())
		took, err = call(ctx, time.Minute)
		require.ErrorIs(t, err, errLeft)
		require.Equal(t, leaveAfter-some, took)
		require.EqualValues(t, 1, running.Load())
		took, err = call(ctx, 0)
		require.ErrorIs(t, err, errLeft)
		require.Zero(t, took)
		require.EqualValues(t, 1, running.Load())
		lines := said.All()
		require.Len(t, lines, 1)
		require.Contains(t, lines[0].Message, "next consumer of profiles does not return")
		time.Sleep(time.Minute)
		require.Zero(t, running.Load())
	})
}

// deaf is a next consumer of both signals that does not return until it may, whether its context has ended or not.
type deaf struct {
	may                chan struct{}
	profiles, metrics  atomic.Int64 // calls
	returned, withData atomic.Int64
}

func (d *deaf) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (d *deaf) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	d.profiles.Add(1)
	return d.wait(p.SampleCount)
}

func (d *deaf) ConsumeMetrics(_ context.Context, m pmetric.Metrics) error {
	d.metrics.Add(1)
	return d.wait(m.DataPointCount)
}

func (d *deaf) wait(count func() int) error {
	<-d.may
	if count() > 0 {
		d.withData.Add(1)
	}
	d.returned.Add(1)
	return nil
}

// release has it return, and waits for that.
func (d *deaf) release(t *testing.T) {
	t.Helper()
	close(d.may)
	require.Eventually(t, func() bool { return d.returned.Load() == d.profiles.Load()+d.metrics.Load() }, time.Minute, time.Millisecond)
	require.Equal(t, d.returned.Load(), d.withData.Load(), "what it was given is its own")
}

// A shutdown ends although consumers look at no context: what they were not given counts as refused, and what they do
// later changes nothing.
func TestShutdownLeavesConsumers(t *testing.T) {
	core, said := observer.New(zap.WarnLevel)
	next := &deaf{may: make(chan struct{})}
	e, _, _ := meteredOutput(true, func(o *Options) {
		o.Next = Consumers{Profiles: next, Metrics: next}
		o.ShutdownPatience, o.Logger = time.Millisecond, zap.New(core)
	})
	e.deliverer.calls.left, e.metering.calls.left = time.Millisecond, time.Millisecond
	const batches, samples = 2, 5
	for range batches {
		b := e.newBatch(e.cpu)
		fill(b, 10, samples, "tenant")
		e.enqueue(b)
	}
	e.start()
	finished := make(chan struct{})
	go func() { e.finish(t.Context()); close(finished) }()
	select {
	case <-finished:
	case <-time.After(time.Minute):
		close(next.may)
		t.Fatal("the shutdown waits for its consumers")
	}
	require.Eventually(t, func() bool { return next.profiles.Load() > 0 && next.metrics.Load() > 0 }, time.Minute, time.Millisecond)
	check := func() {
		t.Helper()
		require.EqualValues(t, batches*samples, e.cpu.dropped[DropRefused].Load())
		require.Zero(t, e.cpu.emitted.Load())
		require.EqualValues(t, 1, e.counts.collections[CollectionRefused].Load())
		require.Zero(t, e.counts.collections[CollectionAccepted].Load())
		require.EqualValues(t, 1, next.profiles.Load())
		require.EqualValues(t, 1, next.metrics.Load())
	}
	check()
	var messages []string
	for _, line := range said.All() {
		messages = append(messages, line.Message)
	}
	require.Equal(t, []string{
		"The next consumer of profiles does not return though its context has ended. It is left behind, and what it was not given counts as refused.",
		"The next consumer of metrics does not return though its context has ended. It is left behind, and what it was not given counts as refused.",
		"The receiver ends with time that the next consumer of metrics has not accepted: it is lost.",
	}, messages)
	next.release(t)
	check()
}

// All else of a pipeline is released though its consumers are left behind, and every hit is told of.
func TestPipelineLeavesConsumers(t *testing.T) {
	testutil.RequireBPF(t)
	next := &deaf{may: make(chan struct{})}
	p, err := New(Options{
		Next: Consumers{Profiles: next, Metrics: next}, SamplesPerSecond: 97, ReportInterval: 100 * time.Millisecond,
		Metrics: MetricOptions{Interval: 100 * time.Millisecond}, ShutdownPatience: time.Millisecond,
	})
	require.NoError(t, err)
	p.output.deliverer.calls.left, p.output.metering.calls.left = time.Millisecond, time.Millisecond
	require.NoError(t, p.Start(t.Context()))
	require.Eventually(t, func() bool { return next.profiles.Load() > 0 && next.metrics.Load() > 0 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, p.Shutdown(context.Background()))
	s := p.Snapshot()
	require.Zero(t, s.CPU().Pending())
	require.Zero(t, s.CPU().Emitted)
	require.NotZero(t, s.CPU().Dropped[DropRefused])
	next.release(t)
	require.Equal(t, s, p.Snapshot())
}
