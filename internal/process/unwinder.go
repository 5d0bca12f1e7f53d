//go:build linux

package process

import (
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Unwinder gives the sampling programs unwind rows. Calls come from several
// goroutines, for one process one after the other.
type Unwinder interface {
	// AddUnwindTable loads the rows of a file.
	AddUnwindTable(t *record.UnwindTable) (record.TableID, error)
	// RemoveUnwindTable gives their memory back.
	RemoveUnwindTable(id record.TableID) error
	// SetFileRows has the rows used wherever a process maps a file of which nothing else
	// is known yet, until RemoveUnwindTable; the zero key is the vDSO's. The slice belongs to the callee.
	SetFileRows(file record.FileKey, id record.TableID, texts []record.FileText) error
	// SetUnwindMappings says where a process maps files with rows, in address order, at
	// most record.MaxUnwindMappings; none is news too. It holds while the process maps so many pages
	// executable and not writable. The slice belongs to the callee.
	SetUnwindMappings(id record.ProcessID, mappings []record.UnwindMapping, execPages uint64) error
	// ForgetMappings takes that back. An unknown process is no error.
	ForgetMappings(id record.ProcessID) error
}

// runsKnown reports whether the rows of a process's program are there already.
func (t *Table) runsKnown(p *Process, info *Info) bool {
	for i := range info.Mappings {
		if f := info.Mappings[i].File; f != nil && f.key == p.load.program {
			return t.rows.loaded(f)
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
	if p.load.reduced {
		// No list, rather than an empty one: that would say that all code has frame pointers.
		if p.load.mapped {
			p.load.mappings, p.load.mapped = nil, false
			if err := t.opts.Unwinder.ForgetMappings(p.id); err != nil {
				t.publishFailed(p, err)
			}
		}
		return
	}
	if info.Verdict == VerdictFiltered {
		// Nobody walks its stacks.
		if !p.load.mapped {
			return
		}
		info = &Info{}
	}
	handle := p.handle
	if !p.sampled.Load() {
		if !t.runsKnown(p, info) {
			return
		}
		handle = 0
	}
	list := make([]record.UnwindMapping, 0, len(info.Mappings))
	for i := range info.Mappings {
		m := &info.Mappings[i]
		if m.File == nil || !m.biased {
			continue
		}
		r, ok := t.rows.of(m.File, handle)
		if !ok {
			continue
		}
		if len(list) == record.MaxUnwindMappings {
			t.counts.mappingsCut.Add(1)
			break
		}
		list = append(list, record.UnwindMapping{Start: m.Start, Limit: m.Limit, Text: m.bias + r.base, Table: r.id, Blocks: uint32(r.blocks)})
	}
	if p.load.mapped && p.load.listedPages == p.load.execPages && slices.Equal(p.load.mappings, list) {
		return
	}
	p.load.mappings, p.load.mapped, p.load.listedPages = list, true, p.load.execPages
	if err := t.opts.Unwinder.SetUnwindMappings(p.id, slices.Clone(list), p.load.execPages); err != nil {
		p.load.mapped = false
		t.publishFailed(p, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.listed = true
	if p.exited {
		// The exit may have been told before there was anything to take back.
		t.schedule(p, workForget, urgent)
	}
}

// rowsChanged has the processes that wait for the rows of a file told.
func (t *Table) rowsChanged(handles []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range handles {
		if p := t.byHandle[h]; p != nil && !p.exited {
			t.schedule(p, workUnwind, urgent)
		}
	}
}

// forget takes back what was published of a process.
func (t *Table) forget(p *Process) {
	err := t.opts.Publisher.Forget(p.id)
	if t.opts.Unwinder != nil {
		err = errors.Join(err, t.opts.Unwinder.ForgetMappings(p.id))
	}
	if err != nil {
		t.publishFailed(p, err)
	}
}

// rowsFailed logs a file whose rows cannot be had.
func (t *Table) rowsFailed(f *File, err error) {
	t.log.Debug("A file has no unwind rows.", zap.String("file", f.path), zap.Error(err))
}
