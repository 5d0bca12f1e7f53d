package customlabelsreceiver

import (
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
)

// status reports to the hosts of all signals how the receiver is, on change only: the worst of
// what is wrong, and OK only when nothing is.
type status struct {
	mu     sync.Mutex
	hosts  []component.Host            // none: closed
	wrong  [pipeline.NumConcerns]error // nil: well
	reason string                      // what was reported last; "": all is well
}

// newStatus starts out well: the collector itself reports that once Start has returned.
func newStatus(hosts ...component.Host) *status {
	return &status{hosts: hosts}
}

// report takes note of an error that the receiver lives on with, or with nil that this concern
// has recovered, and tells the hosts if that changes what they know.
func (s *status) report(of pipeline.Concern, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong[of] = err
	event, reason := componentstatus.NewEvent(componentstatus.StatusOK), ""
	if worst := s.worst(); worst != nil {
		event, reason = componentstatus.NewRecoverableErrorEvent(worst), worst.Error()
		if s.wrong[pipeline.ConcernSamples] != nil {
			event = componentstatus.NewPermanentErrorEvent(worst)
		}
	}
	if len(s.hosts) == 0 || reason == s.reason {
		return
	}
	s.reason = reason
	for _, h := range s.hosts {
		componentstatus.ReportStatus(h, event)
	}
}

// worst returns the error of the first concern that has one, nil if none has.
func (s *status) worst() error {
	if i := slices.IndexFunc(s.wrong[:], func(err error) bool { return err != nil }); i >= 0 {
		return s.wrong[i]
	}
	return nil
}

// close makes every later report do nothing.
func (s *status) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = nil
}
