//go:build linux

package process

import (
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// Thread returns a living thread of a process: its leader, or another one if the
// leader has exited. It makes sure that the PID is still that process's; whoever reads
// /proc by it asks again afterwards. It reads /proc.
func (r *reader) Thread(p *Process) (tid int, err error) {
	if p.pid == 0 {
		return 0, procfs.ErrNoProcess
	}
	tid, _, err = r.identify(p.id, p.pid)
	return tid, err
}

// Began returns when a process became what it is: when it was executed, or, if no event has told of that, when it was
// started. It is the time of CLOCK_REALTIME, had that always been set as it is now:
//
//	CLOCK_REALTIME now - (CLOCK_BOOTTIME now - CLOCK_BOOTTIME then)
//
// What is given a time by CLOCK_REALTIME from now on is later, however the clock was set before.
func (t *Table) Began(p *Process) time.Time {
	t.mu.RLock()
	then := max(int64(p.id.StartNs), p.execBootNs)
	t.mu.RUnlock()
	now := time.Now() // before the other clock: if this thread has to wait in between, the process began earlier
	return now.Add(-time.Duration(t.bootNow() - then))
}

// bootNow returns CLOCK_BOOTTIME in ns, as the kernel has it: it is another one in our time namespace.
func (r *reader) bootNow() int64 { return r.opts.bootTime() - r.bootOffset }
