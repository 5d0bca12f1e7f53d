package customlabelsreceiver

import (
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// status reports to the hosts of all signals how the receiver is, on change only.
type status struct {
	mu     sync.Mutex
	hosts  []component.Host // none: closed
	reason string           // what is wrong; "" when all is well
}

// newStatus starts out well: the collector itself reports that once Start has returned.
func newStatus(hosts ...component.Host) *status {
	return &status{hosts: hosts}
}

// report tells the hosts of an error that the receiver lives on with, or with nil
// that it has recovered.
func (s *status) report(err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hosts) == 0 || reason == s.reason {
		return
	}
	s.reason = reason
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if err != nil {
		event = componentstatus.NewRecoverableErrorEvent(err)
	}
	for _, h := range s.hosts {
		componentstatus.ReportStatus(h, event)
	}
}

// close makes every later report do nothing.
func (s *status) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = nil
}
