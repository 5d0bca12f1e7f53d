package customlabelsreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"
)

var errStarted = errors.New("custom_labels is already started")

// pipeline is what runs between Start and Shutdown. It is used once.
type pipeline interface {
	// start loads and attaches everything and returns quickly; what goes on
	// afterwards does so on goroutines with a context of their own. After an
	// error nothing is left behind, and shutdown is not called.
	start(ctx context.Context) error
	// shutdown stops sampling, hands over what was sampled, and releases
	// everything. When ctx ends first, what was not handed over yet is dropped
	// and counted, but everything is still released.
	shutdown(ctx context.Context) error
}

// newPipelineFunc makes a pipeline that delivers to next. The pipeline tells
// report how it is: an error while it is degraded, nil when it has recovered.
// report does not block and may be called at any time from any goroutine.
type newPipelineFunc func(cfg *Config, set receiver.Settings, next xconsumer.Profiles, report func(error)) (pipeline, error)

// profilesReceiver starts and stops a pipeline.
type profilesReceiver struct {
	cfg         *Config
	set         receiver.Settings
	next        xconsumer.Profiles
	newPipeline newPipelineFunc

	mu      sync.Mutex
	running pipeline // nil: not started, idle after an ignored error, or shut down
	status  *status
}

func newProfilesReceiver(
	cfg *Config,
	set receiver.Settings,
	next xconsumer.Profiles,
	newPipeline newPipelineFunc,
) (*profilesReceiver, error) {
	observed, err := newObservedConsumer(set, next)
	if err != nil {
		return nil, fmt.Errorf("create receiver telemetry: %w", err)
	}
	return &profilesReceiver{cfg: cfg, set: set, next: observed, newPipeline: newPipeline}, nil
}

// Start begins to sample. An error names what this host lacks; with error_mode
// "ignore" it is logged and reported as component status instead, and the
// receiver stays idle.
func (r *profilesReceiver) Start(ctx context.Context, host component.Host) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running != nil {
		return errStarted
	}
	st := newStatus(host)
	p, err := r.startPipeline(ctx, st)
	if err != nil {
		st.close()
		if r.cfg.ErrorMode != ErrorModeIgnore {
			return err
		}
		r.set.Logger.Error("custom_labels could not start and stays idle, because error_mode is ignore", zap.Error(err))
		componentstatus.ReportStatus(host, componentstatus.NewPermanentErrorEvent(err))
		return nil
	}
	r.running, r.status = p, st
	return nil
}

func (r *profilesReceiver) startPipeline(ctx context.Context, st *status) (pipeline, error) {
	p, err := r.newPipeline(r.cfg, r.set, r.next, st.report)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Shutdown hands over what was sampled and releases everything. It does nothing
// when the receiver is not running.
func (r *profilesReceiver) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		return nil
	}
	p := r.running
	r.running = nil
	// The collector reports the end of the component itself; nothing may follow.
	r.status.close()
	return p.shutdown(ctx)
}
