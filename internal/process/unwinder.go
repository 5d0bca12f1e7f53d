//go:build linux

package process

import (
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// Unwinder gives the sampling programs unwind rows. Calls come from several
// goroutines, for one process one after the other.
type Unwinder interface {
	// AddRows loads the rows of a file.
	AddRows(t *unwind.Table) (RowsID, error)
	// RemoveRows gives their memory back.
	RemoveRows(id RowsID) error
	// SetFileRows has the rows used wherever a process maps a file of which nothing else
	// is known yet, until RemoveRows; the zero key is the vDSO's. The slice belongs to the callee.
	SetFileRows(file FileKey, id RowsID, texts []FileText) error
	// SetMappings says where a process maps files with rows, in address order, at
	// most MaxRowMappings; none is news too. It holds while the process maps so many pages
	// executable and not writable. The slice belongs to the callee.
	SetMappings(id ID, mappings []RowMapping, execPages uint64) error
	// ForgetMappings takes that back. An unknown process is no error.
	ForgetMappings(id ID) error
}

// RowsID names the rows of a file; 0 is none.
type RowsID uint64

// MaxRowMappings of one process are given to an Unwinder.
const MaxRowMappings = 1024

// RowMapping says where a process maps the rows of a file.
type RowMapping struct {
	Start, Limit uint64
	// Text is the address of the first block of the rows.
	Text uint64
	// Rows is 0 while the file has none, but should.
	Rows   RowsID
	Blocks int
}

// FileText says which pages of a file are mapped as one, executable.
type FileText struct {
	FirstPage, LimitPage uint32
	// Text is the address of the first block of the rows less the one of the file's first byte.
	Text int64
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
	list := make([]RowMapping, 0, len(info.Mappings))
	for i := range info.Mappings {
		m := &info.Mappings[i]
		if m.File == nil || !m.biased {
			continue
		}
		r, ok := t.rows.of(m.File, handle)
		if !ok {
			continue
		}
		if len(list) == MaxRowMappings {
			t.counts.mappingsCut.Add(1)
			break
		}
		list = append(list, RowMapping{Start: m.Start, Limit: m.Limit, Text: m.bias + r.base, Rows: r.id, Blocks: r.blocks})
	}
	if p.load.mapped && p.load.listedPages == p.load.execPages && slices.Equal(p.load.mappings, list) {
		return
	}
	p.load.mappings, p.load.mapped, p.load.listedPages = list, true, p.load.execPages
	if err := t.opts.Unwinder.SetMappings(p.id, slices.Clone(list), p.load.execPages); err != nil {
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
