package customlabelsreceiver

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
)

// receivers are those of one factory. The collector makes one for each signal of a
// configuration, which it names by the same Config; they are one here.
type receivers struct {
	newEngine newEngineFunc

	mu       sync.Mutex
	byConfig map[*Config]*shared // until the first shutdown
}

func newReceivers(newEngine newEngineFunc) *receivers {
	return &receivers{newEngine: newEngine, byConfig: map[*Config]*shared{}}
}

func (r *receivers) createProfiles(
	_ context.Context, set receiver.Settings, cfg component.Config, next xconsumer.Profiles,
) (xreceiver.Profiles, error) {
	if err := pipeline.Supported(); err != nil {
		return nil, fmt.Errorf("custom_labels %w", err)
	}
	observed, err := newObservedConsumer(set, next)
	if err != nil {
		return nil, fmt.Errorf("create receiver telemetry: %w", err)
	}
	return r.add(cfg.(*Config), set, pipeline.Consumers{Profiles: observed}), nil
}

func (r *receivers) createMetrics(
	_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics,
) (receiver.Metrics, error) {
	if err := pipeline.Supported(); err != nil {
		return nil, fmt.Errorf("custom_labels %w", err)
	}
	observed, err := newObservedMetrics(set, next)
	if err != nil {
		return nil, fmt.Errorf("create receiver telemetry: %w", err)
	}
	return r.add(cfg.(*Config), set, pipeline.Consumers{Metrics: observed}), nil
}

// add makes the receiver of a signal. A configuration that has this signal already is
// another receiver's.
func (r *receivers) add(cfg *Config, set receiver.Settings, next pipeline.Consumers) *signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.byConfig[cfg]
	if of == nil || !of.join(next) {
		of = &shared{cfg: cfg, set: set, next: next, newEngine: r.newEngine, forget: r.forget}
		r.byConfig[cfg] = of
	}
	s := &signal{of: of}
	of.signals = append(of.signals, s)
	return s
}

func (r *receivers) forget(s *shared) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byConfig[s.cfg] == s {
		delete(r.byConfig, s.cfg)
	}
}
