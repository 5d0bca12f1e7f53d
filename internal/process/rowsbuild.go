//go:build linux

package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// rowsHeld times the size of its rows is held while a file's are built: the rows, and the
// list that they are made from.
const rowsHeld = 2

// errNoRoom says that the rows of files in use leave no room.
var errNoRoom = errors.New("no room for unwind rows")

// errClosed says that a file could not be opened, through the process that asked for its rows.
var errClosed = errors.New("open file")

// buildRows reads the rows of a file and loads them.
func (t *Table) buildRows(f *File) {
	result, err := t.loadRows(f)
	switch {
	case err == nil:
		result.state = rowsReady
		t.counts.rowsBuilt.Add(1)
	case errors.Is(err, unwind.ErrNone):
		result = fileRows{state: rowsNone}
	case errors.Is(err, errNoRoom):
		result = fileRows{state: rowsRefused}
		t.counts.rowsRefused.Add(1)
		t.rowsFailed(f, err)
	case errors.Is(err, errClosed):
		// Another process that maps it may have more luck, where it is the same file.
		result = fileRows{state: rowsUnknown}
		t.counts.rowsFailed.Add(1)
		t.rowsFailed(f, err)
	default:
		result = fileRows{state: rowsFailed}
		t.counts.rowsFailed.Add(1)
		t.rowsFailed(f, err)
	}
	t.rowsChanged(t.rows.settle(f, result))
}

func (t *Table) loadRows(f *File) (result fileRows, err error) {
	asked := f.rows.asked
	file, size, err := asked.Open()
	if err != nil {
		return fileRows{}, fmt.Errorf("%w: %w", errClosed, err)
	}
	defer file.Close()
	key := asked.named(file)
	result, shared := t.shareRows(f, file, size)
	if !shared {
		if result, err = t.readRows(file, size); err != nil {
			return fileRows{}, err
		}
	}
	if asked.named(file) != key { // what was read may be of the one before and of the one after
		t.dropTable(result.id)
		return fileRows{}, fmt.Errorf("%w: %w", errClosed, procfs.ErrReplaced)
	}
	result.kernel = key
	if key != (record.FileKey{}) || f.vdso != nil {
		if err := t.opts.Unwinder.SetFileRows(key, result.id, f.facts.layout.texts(result.base)); err != nil {
			t.log.Debug("A file's rows are used by processes that were looked at only.", zap.String("file", f.path), zap.Error(err))
		}
	}
	return result, nil
}

// readRows makes rows and loads them.
func (t *Table) readRows(file *os.File, size int64) (fileRows, error) {
	e, err := elffile.New(file, size)
	if err != nil {
		return fileRows{}, err
	}
	table, err := unwind.New(e, unwind.Limits{})
	if err != nil {
		return fileRows{}, err
	}
	result := fileRows{base: table.Base, blocks: len(table.Index) - 1}
	bytes := table.Bytes()
	if !t.roomForRows(bytes) {
		return fileRows{}, errNoRoom
	}
	t.opts.Memory.Add(budget.OfRows, rowsHeld*bytes)
	defer t.opts.Memory.Add(budget.OfRows, -rowsHeld*bytes)
	if result.id, err = t.opts.Unwinder.AddUnwindTable(&table.UnwindTable); err == nil {
		t.rows.hold(result.id, bytes)
	}
	return result, err
}

// roomForRows makes room by removing the rows that no process needs, those first
// that have been idle for the longest time.
func (t *Table) roomForRows(bytes int) bool {
	r := t.rows
	for {
		r.mu.Lock()
		if r.bytes+bytes <= r.max {
			r.mu.Unlock()
			return true
		}
		idle := r.idle(t.now())
		r.mu.Unlock()
		if len(idle) == 0 {
			return false
		}
		t.removeRows(idle[0])
	}
}

// idle returns the files with rows that no process maps, the longest idle first.
func (r *rows) idle(now int64) (idle []*File) {
	for f := range r.ready {
		if !f.unused() {
			f.rows.idleSince = 0
			continue
		}
		if f.rows.idleSince == 0 {
			f.rows.idleSince = now
		}
		idle = append(idle, f)
	}
	slices.SortFunc(idle, func(a, b *File) int { return cmp.Compare(a.rows.idleSince, b.rows.idleSince) })
	return idle
}

// sweepRows removes the rows that have been idle for long.
func (t *Table) sweepRows() {
	t.rows.mu.Lock()
	now := t.now()
	idle := t.rows.idle(now)
	n := 0
	for n < len(idle) && now-idle[n].rows.idleSince >= int64(keepRows) {
		n++
	}
	t.rows.mu.Unlock()
	for _, f := range idle[:n] {
		t.removeRows(f)
	}
}

func (t *Table) removeRows(f *File) {
	r := t.rows
	r.mu.Lock()
	if _, ok := r.ready[f]; !ok {
		r.mu.Unlock()
		return
	}
	id := f.rows.id
	r.released++
	delete(r.ready, f)
	f.rows = fileRows{}
	r.mu.Unlock()
	t.dropTable(id)
}

// dropTable gives the rows' memory back when no file has them any more.
func (t *Table) dropTable(id record.TableID) {
	if !t.rows.release(id) {
		return
	}
	if err := t.opts.Unwinder.RemoveUnwindTable(id); err != nil {
		t.log.Debug("Unwind rows cannot be removed.", zap.Error(err))
	}
}

// waiting returns how many files wait to be built.
func (r *rows) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.wanted)
}

// stats returns how many files have rows, and the bytes of these.
func (r *rows) stats() (files, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ready), r.bytes
}
