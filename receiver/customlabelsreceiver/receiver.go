package customlabelsreceiver

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
)

var (
	errStarted = errors.New("custom_labels is already started")
	errLeft    = errors.New("custom_labels has ended with its other signal, and gives nothing any more: restart the collector, and do not reload signals one by one (feature gate service.partialReload)")
)

// leftAfter is how long after the end of the engine a signal that was not shut down is told of it. A collector that
// ends shuts down one after the other.
const leftAfter = time.Minute

// engine is what runs between Start and Shutdown: a pipeline.Pipeline with telemetry. It is
// used once. After an error of Start nothing is left behind, and Shutdown is not called.
type engine interface {
	Start(ctx context.Context) error
	Shutdown(ctx context.Context) error
}

// newEngineFunc makes an engine that delivers to next. The engine tells
// report how it is, by concern: an error while it is degraded, nil when it has recovered.
// report does not block and may be called at any time from any goroutine.
type newEngineFunc func(cfg *Config, set receiver.Settings, next pipeline.Consumers, report func(pipeline.Concern, error)) (engine, error)

// shared starts and stops the engine of a configuration for all of its signals. It runs
// while all of them are started: the collector starts what comes next in a pipeline before
// its receiver and stops it afterwards, so that from the last Start to the first
// Shutdown, and not before or after, all consumers are there.
type shared struct {
	cfg       *Config
	set       receiver.Settings // of the signal that was made first
	newEngine newEngineFunc
	forget    func(*shared)

	mu      sync.Mutex
	next    pipeline.Consumers
	signals []*signal
	running engine // nil: not started, idle after an ignored error, or shut down
	status  *status
	left    *time.Timer // calls tellLeft; nil: the engine has not ended
}

// signal is the receiver of one signal.
type signal struct {
	of   *shared
	host component.Host // nil: not started
}

// join adds a consumer; not if there is one of its signal.
func (s *shared) join(next pipeline.Consumers) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case next.Profiles != nil && s.next.Profiles == nil:
		s.next.Profiles = next.Profiles
	case next.Metrics != nil && s.next.Metrics == nil:
		s.next.Metrics = next.Metrics
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
	e, err := s.newEngine(s.cfg, s.set, s.next, st.report)
	if err == nil {
		err = e.Start(ctx)
	}
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
	s.running, s.status = e, st
	return nil
}

// hosts returns those of the signals that are started, and whether all of them are.
func (s *shared) hosts() (hosts []component.Host, all bool) {
	for _, r := range s.signals {
		if r.host != nil {
			hosts = append(hosts, r.host)
		}
	}
	return hosts, len(hosts) == len(s.signals)
}

// tellLeft tells the signals that go on without an engine.
func (s *shared) tellLeft() {
	s.mu.Lock()
	defer s.mu.Unlock()
	hosts, _ := s.hosts()
	if s.running != nil || len(hosts) == 0 {
		return
	}
	s.set.Logger.Error(errLeft.Error())
	for _, h := range hosts {
		componentstatus.ReportStatus(h, componentstatus.NewPermanentErrorEvent(errLeft))
	}
}

// Shutdown hands over what was sampled, of all signals, and releases everything. It does
// nothing when the receiver is not running.
func (r *signal) Shutdown(ctx context.Context) error {
	s := r.of
	s.forget(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.host = nil
	others, _ := s.hosts()
	if s.left != nil && len(others) == 0 {
		s.left.Stop()
	}
	if s.running == nil {
		return nil
	}
	e := s.running
	s.running = nil
	// The collector reports the end of the component itself; nothing may follow.
	s.status.close()
	err := e.Shutdown(ctx)
	if len(others) > 0 {
		s.left = time.AfterFunc(leftAfter, s.tellLeft)
	}
	return err
}
