package pipeline

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// leaveAfter is how long a next consumer is waited for whose context has ended: that of all its calls together.
const leaveAfter = 5 * time.Second

var errLeft = errors.New("the next consumer did not return though its context had ended")

// calls are those of the next consumer of a signal. One that does not return is left behind: what it waits for may only
// end when the receiver has, as the shutdown of what comes after it does. It belongs to one goroutine.
type calls struct {
	log  *zap.Logger
	what string        // "profiles" or "metrics"
	left time.Duration // of leaveAfter; 0: the consumer is not called any more
}

func newCalls(log *zap.Logger, what string) calls { return calls{log, what, leaveAfter} }

// call calls the consumer, with its context, and returns its error, or errLeft. After that, consume may still be
// running: nothing that it uses may be used again.
func (c *calls) call(ctx context.Context, consume func() error) error {
	if c.left <= 0 {
		return errLeft
	}
	returned := make(chan error, 1)
	go func() { returned <- consume() }()
	select {
	case err := <-returned:
		return err
	case <-ctx.Done():
	}
	began := time.Now()
	timer := time.NewTimer(c.left)
	defer timer.Stop()
	select {
	case err := <-returned:
		c.left -= time.Since(began)
		return err
	case <-timer.C:
		c.left = 0
		c.log.Warn("The next consumer of " + c.what + " does not return though its context has ended. It is left behind, and what it was not given counts as refused.")
		return errLeft
	}
}
