package customlabelsreceiver

import (
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// status reports to the host how the receiver is, on change only.
type status struct {
	mu     sync.Mutex
	host   component.Host // nil: closed
	reason string         // what is wrong; "" when all is well
}

// newStatus starts out well: the collector itself reports that once Start has returned.
func newStatus(host component.Host) *status {
	return &status{host: host}
}

// report tells the host of an error that the receiver lives on with, or with nil
// that it has recovered.
func (s *status) report(err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.host == nil || reason == s.reason {
		return
	}
	s.reason = reason
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if err != nil {
		event = componentstatus.NewRecoverableErrorEvent(err)
	}
	componentstatus.ReportStatus(s.host, event)
}

// close makes every later report do nothing.
func (s *status) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = nil
}
