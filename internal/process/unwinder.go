//go:build linux

package process

import (
	"errors"
	"slices"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Unwinder gives the sampling programs unwind rows. Calls come from several
// goroutines, for one process one after the other, but for ForgetMappings, as
// Publisher's ForgetRunning.
type Unwinder interface {
	executable.Tables
	// SetUnwindMappings says where a process maps files with rows, in address order, at
	// most record.MaxUnwindMappings; none is news too. It holds while the process maps so many pages
	// executable and not writable. The slice belongs to the callee.
	SetUnwindMappings(id record.ProcessID, mappings []record.UnwindMapping, execPages uint64) error
	// SetRuntime tells of the language runtime of a process; of kind record.RuntimeNone: it has
	// none any more.
	SetRuntime(id record.ProcessID, runtime record.RuntimeProcess) error
	// ForgetMappings takes all that back. An unknown process is no error.
	ForgetMappings(id record.ProcessID) error
}

// runsKnown reports whether the rows of a process's program are there already.
func (t *Table) runsKnown(p *Process, info *Info) bool {
	for i := range info.Mappings {
		if f := info.Mappings[i].File; f != nil && f.ID() == p.worker().read.program {
			return t.rows.Loaded(f)
		}
	}
	return false
}

// publishMappings tells the sampling programs which rows hold where in a process.
// When it has been sampled, those that are not there yet are asked for. Else only
// programs of which others were sampled are worth it: the next short life of one
// of these then has whole stacks from its first sample on.
func (t *Table) publishMappings(p *Process, info *Info) {
	if t.opts.Unwinder == nil || info == nil || info.KernelThread {
		return
	}
	if p.worker().read.extent == extentReduced || info.Verdict == VerdictFiltered {
		// No list, rather than an empty one: that would say that all code has frame pointers, of a filtered
		// process when it is wanted again, and of its children.
		if p.worker().mapped {
			p.worker().mappings, p.worker().mapped = nil, false
			p.worker().runtime = nil
			if err := t.opts.Unwinder.ForgetMappings(p.id); err != nil {
				t.publishFailed(p.pid, err)
			}
		}
		return
	}
	owner := p.worker().owner
	waiter := executable.Waiter{Handle: p.handle, UID: owner.UID, Container: owner.Container, PID: p.pid}
	if !p.sampled.Load() {
		if !t.runsKnown(p, info) {
			return
		}
		waiter.Handle = 0
	}
	list := make([]record.UnwindMapping, 0, len(info.Mappings))
	for i := range info.Mappings {
		m := &info.Mappings[i]
		if m.File == nil || !m.Biased {
			continue
		}
		waiter.Mapping = m
		r, ok := t.rows.Of(m.File, waiter)
		if !ok {
			continue
		}
		if len(list) == record.MaxUnwindMappings {
			t.counts.mappingsCut.Add(1)
			break
		}
		list = append(list, record.UnwindMapping{Start: m.Start, Limit: m.Limit, Text: m.Bias + r.Base, Table: r.ID, Blocks: uint32(r.Blocks)})
	}
	same := t.publishRuntime(p, info)
	if same && p.worker().mapped && p.worker().pages == p.worker().read.execPages && slices.Equal(p.worker().mappings, list) {
		return
	}
	p.worker().mappings, p.worker().mapped, p.worker().pages = list, true, p.worker().read.execPages
	if err := t.opts.Unwinder.SetUnwindMappings(p.id, slices.Clone(list), p.worker().pages); err != nil {
		p.worker().mapped = false
		t.publishFailed(p.pid, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.lingers = true
	t.forgetExited(p)
}

// rowsChanged has the processes that wait for the rows of a file told.
func (t *Table) rowsChanged(handles []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range handles {
		if p := t.byHandle[h]; p != nil && !p.exited {
			t.jobs.schedule(p, workUnwind, urgent)
		}
	}
}

const (
	// forgetEvery is how often what was published of processes that have ended is taken back: the
	// sampling programs have removed all but the mappings at the exit, so a wake-up for each is too much.
	forgetEvery = 250 * time.Millisecond
	// maxForgetting processes wait for that. Others come at once: what is urgent, however much there is
	// of it, must not keep the maps full.
	maxForgetting = 256
)

// forgetExited has taken back what was published of a process, if it has ended: before its end was
// told, or after that. The table is locked.
func (t *Table) forgetExited(p *Process) {
	if !p.exited || p.publication == unpublished && !p.lingers || p.work&workForget != 0 {
		return
	}
	due := int64(urgent)
	if t.forgetting < maxForgetting {
		now := t.now()
		due = now - now%int64(forgetEvery) + int64(forgetEvery)
	}
	t.forgetting++
	t.jobs.schedule(p, workForget, due)
}

// forget takes back what was published of a process that has ended. If it has entered again, that is done when it ends
// again: what is published may be of both.
func (t *Table) forget(p *Process) {
	t.mu.Lock()
	t.forgetting--
	again := t.byID[p.id]
	if again != nil && again != p {
		again.lingers = true
		t.forgetExited(again)
	}
	t.mu.Unlock()
	if again == nil || again == p {
		t.forgotten(p.id, p.pid, t.opts.Publisher.Forget(p.id))
	}
}

// forgetRunning takes back all that is known of a process that may go on to run.
func (t *Table) forgetRunning(id record.ProcessID, pid int) {
	t.forgotten(id, pid, t.opts.Publisher.ForgetRunning(id))
}

// forgotten takes back the mappings of a process whose label sources were.
func (t *Table) forgotten(id record.ProcessID, pid int, err error) {
	if t.opts.Unwinder != nil {
		err = errors.Join(err, t.opts.Unwinder.ForgetMappings(id))
	}
	if err != nil {
		t.publishFailed(pid, err)
	}
}
