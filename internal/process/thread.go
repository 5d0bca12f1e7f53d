//go:build linux

package process

import (
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// A Thread is one through which a process is read, and what tells another program in its place: one that the process
// executes, or that has the id of a thread that has ended.
type Thread struct {
	TID        int
	startStack uint64 // of the program, which most often differs (procfs.Stat)
}

// Thread returns a living thread of a process: its leader, or another one if the
// leader has exited. It makes sure that the PID is still that process's; whoever reads
// by it asks Still afterwards. It reads /proc.
func (r *reader) Thread(p *Process) (Thread, error) {
	if p.pid == 0 {
		return Thread{}, procfs.ErrNoProcess
	}
	tid, stat, err := r.identify(p.id, p.pid)
	return Thread{tid, stat.StartStack}, err
}

// Still returns nil if all that was read through a thread since Thread has returned it was of the process, and of the
// program that it ran.
func (r *reader) Still(p *Process, thread Thread) error {
	now, err := r.Thread(p)
	if err == nil && now != thread {
		err = errOtherThread
	}
	return err
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
