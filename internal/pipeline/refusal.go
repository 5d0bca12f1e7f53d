package pipeline

import (
	"errors"
	"time"

	"go.uber.org/zap"
)

// refusals says in the log that the next consumer refuses what it is given: the first time,
// and then once a minute at most.
type refusals struct {
	log  *zap.Logger
	what string // "profiles" or "metrics"
	now  func() time.Time

	saidAt   time.Time
	requests int // refused since then
}

func newRefusals(log *zap.Logger, what string) refusals {
	return refusals{log: log, what: what, now: time.Now}
}

// add takes note of a request that was refused with an error. That the consumer was left behind is said already.
func (r *refusals) add(err error) {
	if errors.Is(err, errLeft) {
		return
	}
	r.requests++
	now := r.now()
	if !r.saidAt.IsZero() && now.Sub(r.saidAt) < time.Minute {
		return
	}
	r.log.Error("The next consumer refused "+r.what+".", zap.Int("requests", r.requests), zap.Error(err))
	r.saidAt, r.requests = now, 0
}
