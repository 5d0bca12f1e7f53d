//go:build linux

package process

import (
	"context"
	"time"
)

// verdictGap is how often it is looked whether there are verdicts.
const verdictGap = 2 * time.Millisecond

// AwaitVerdicts has processes judged that run and were not judged yet, and waits until they
// are, at most so long. Each is waited for once: one that hangs delays one batch.
func (t *Table) AwaitVerdicts(ctx context.Context, processes []*Process, atMost time.Duration) {
	waiting := make([]*Process, 0, len(processes))
	t.mu.Lock()
	for _, p := range processes {
		if p.exited || p.pid == 0 || p.awaited {
			continue
		}
		p.awaited = true
		t.jobs.schedule(p, workLoad, urgent)
		waiting = append(waiting, p)
	}
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	tick := time.NewTicker(verdictGap)
	defer tick.Stop()
	for {
		for len(waiting) > 0 && t.decided(waiting[len(waiting)-1]) {
			waiting = waiting[:len(waiting)-1]
		}
		if len(waiting) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// decided reports whether there is a verdict on a process, or will be none.
func (t *Table) decided(p *Process) bool {
	if p.Info().Verdict != VerdictUnknown {
		return true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return p.exited
}
