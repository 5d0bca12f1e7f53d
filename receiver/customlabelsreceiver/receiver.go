package customlabelsreceiver

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
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

// consumers are what comes next in the pipelines of each signal; nil: the receiver is in
// none of that signal. There is at least one.
type consumers struct {
	profiles xconsumer.Profiles
	metrics  consumer.Metrics
}

// newPipelineFunc makes a pipeline that delivers to next. The pipeline tells
// report how it is: an error while it is degraded, nil when it has recovered.
// report does not block and may be called at any time from any goroutine.
type newPipelineFunc func(cfg *Config, set receiver.Settings, next consumers, report func(error)) (pipeline, error)

// shared starts and stops the pipeline of a configuration for all of its signals. It runs
// while all of them are started: the collector starts what comes next in a pipeline before
// its receiver and stops it afterwards, so that from the last Start to the first
// Shutdown, and not before or after, all consumers are there.
type shared struct {
	cfg         *Config
	set         receiver.Settings // of the signal that was made first
	newPipeline newPipelineFunc
	forget      func(*shared)

	mu      sync.Mutex
	next    consumers
	signals []*signal
	running pipeline // nil: not started, idle after an ignored error, or shut down
	status  *status
}

// signal is the receiver of one signal.
type signal struct {
	of   *shared
	host component.Host // nil: not started
}

// join adds a consumer; not if there is one of its signal.
func (s *shared) join(next consumers) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case next.profiles != nil && s.next.profiles == nil:
		s.next.profiles = next.profiles
	case next.metrics != nil && s.next.metrics == nil:
		s.next.metrics = next.metrics
	default:
		return false
	}
	return true
}

// Start begins to sample, when all signals of the configuration are started. An error
// names what this host lacks; with error_mode
// "ignore" it is logged and reported as component status instead, and the
// receiver stays idle.
func (r *signal) Start(ctx context.Context, host component.Host) error {
	s := r.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.host != nil {
		return errStarted
	}
	r.host = host
	hosts, all := s.hosts()
	if !all {
		return nil
	}
	st := newStatus(hosts...)
	p, err := s.startPipeline(ctx, st)
	if err != nil {
		st.close()
		if s.cfg.ErrorMode != ErrorModeIgnore {
			r.host = nil
			return err
		}
		s.set.Logger.Error("custom_labels could not start and stays idle, because error_mode is ignore", zap.Error(err))
		for _, h := range hosts {
			componentstatus.ReportStatus(h, componentstatus.NewPermanentErrorEvent(err))
		}
		return nil
	}
	s.running, s.status = p, st
	return nil
}

// hosts returns those of the signals, and whether all of them are started.
func (s *shared) hosts() (hosts []component.Host, all bool) {
	for _, r := range s.signals {
		if r.host == nil {
			return nil, false
		}
		hosts = append(hosts, r.host)
	}
	return hosts, true
}

func (s *shared) startPipeline(ctx context.Context, st *status) (pipeline, error) {
	p, err := s.newPipeline(s.cfg, s.set, s.next, st.report)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Shutdown hands over what was sampled, of all signals, and releases everything. It does
// nothing when the receiver is not running.
func (r *signal) Shutdown(ctx context.Context) error {
	s := r.of
	s.forget(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.host = nil
	if s.running == nil {
		return nil
	}
	p := s.running
	s.running = nil
	// The collector reports the end of the component itself; nothing may follow.
	s.status.close()
	return p.shutdown(ctx)
}
