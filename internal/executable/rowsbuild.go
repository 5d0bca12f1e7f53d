//go:build linux

package executable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// errNoRoom says that the rows of files in use leave no room.
var errNoRoom = errors.New("no room for unwind rows")

// errKernelRoom says that the kernel has no memory for rows, no place in its list of tables, or
// that we have no descriptor for them.
var errKernelRoom = errors.New("load unwind rows")

// errMemory says that other parts hold so much memory that rows are not built.
var errMemory = errors.New("no memory to build unwind rows")

// errClosed says that a file could not be opened, or not be read to its end, through the process
// that asked for its rows.
var errClosed = errors.New("read file")

// build reads the rows of a file from the one that was asked for, and loads them.
func (r *Rows) build(ctx context.Context, f, asked *File, asker Asker, by *builder) {
	result, err := r.load(ctx, f, asked, asker, by)
	switch {
	case err == nil:
		result.state = rowsReady
	case errors.Is(err, unwind.ErrNone):
		result = fileRows{state: rowsNone}
	case errors.Is(err, errNoRoom), errors.Is(err, errKernelRoom), errors.Is(err, errMemory):
		result = fileRows{state: rowsRefused, noMemory: errors.Is(err, errMemory)}
		if !errors.Is(err, errNoRoom) {
			result.retryNs = r.opts.Now() + int64(retryRows)
		}
		r.counts.refused.Add(1)
		r.failed(f, err)
	case ctx.Err() != nil:
		result = fileRows{}
	case errors.Is(err, errClosed):
		result = r.closedRows()
		r.counts.failed.Add(1)
		r.failed(f, err)
	default:
		result = fileRows{state: rowsFailed}
		r.counts.failed.Add(1)
		r.failed(f, err)
	}
	handles, ok := r.settle(f, result, by)
	if !ok {
		if err == nil {
			r.dropTable(result.ID, record.FileKey{})
		}
		return
	}
	if err == nil {
		r.counts.built.Add(1)
	}
	if !r.place(f) {
		r.counts.unplaced.Add(1)
	}
	r.opts.Changed(handles)
}

// closedRows is what becomes of a file that cannot be read through a process. Another one that maps it may have more
// luck, where it is the same file.
func (r *Rows) closedRows() fileRows {
	return fileRows{state: rowsUnknown, retryNs: r.opts.Now() + int64(retryRows)}
}

func (r *Rows) load(ctx context.Context, f, asked *File, asker Asker, by *builder) (result fileRows, err error) {
	file, size, err := asked.OpenBy(asker)
	if err != nil {
		return fileRows{}, fmt.Errorf("%w: %w", errClosed, err)
	}
	defer file.Close()
	key := asked.named(file)
	if result, err = r.read(ctx, file, size, r.poorest(f, by)); err != nil {
		return fileRows{}, err
	}
	if asked.named(file) != key { // what was read may be of the one before and of the one after
		r.dropTable(result.ID, record.FileKey{})
		return fileRows{}, fmt.Errorf("%w: %w", errClosed, procfs.ErrReplaced)
	}
	result.kernel = key
	return result, nil
}

// faultOr is errClosed if a file could not be read, else err.
func faultOr(file *elffile.FaultReader, err error) error {
	if file.Fault != nil {
		return fmt.Errorf("%w: %w", errClosed, file.Fault)
	}
	return err
}

// read makes rows, for a user, and loads them. It ends with the context.
func (r *Rows) read(ctx context.Context, contents io.ReaderAt, size int64, uid uint32) (fileRows, error) {
	file := &elffile.FaultReader{ReaderAt: contents}
	e, err := elffile.New(file, size)
	if err != nil {
		return fileRows{}, faultOr(file, err)
	}
	filePace := budget.FilePace(r.cpuTime)
	pace := func() error { return cmp.Or(ctx.Err(), filePace()) }
	e.Pace(pace)
	held := rowsHeld{memory: r.opts.Memory}
	defer held.release()
	table, err := unwind.New(e, unwind.Limits{Hold: held.hold, CodeBytes: codeBytes(r.opts.Memory)})
	if err != nil {
		return fileRows{}, faultOr(file, err)
	}
	defer table.Close()
	held.set(table.Held())
	// The table has what could be read until then.
	if err := cmp.Or(faultOr(file, nil), pace()); err != nil {
		return fileRows{}, err
	}
	result := fileRows{FileRows: FileRows{Base: table.Base, Blocks: len(table.Index) - 1}}
	rows := rowsOf(&table.UnwindTable)
	var shared bool
	if result.ID, shared = r.share(rows); shared {
		return result, nil
	}
	inKernel := table.KernelBytes()
	if !r.roomFor(inKernel, uid) {
		return fileRows{}, errNoRoom
	}
	if result.ID, err = r.add(&table.UnwindTable); err == nil {
		r.hold(result.ID, inKernel, rows)
	}
	return result, err
}

// add loads rows. Where the kernel has no room for them, those that no process needs make some.
func (r *Rows) add(t *record.UnwindTable) (record.TableID, error) {
	for {
		id, err := r.opts.Tables.AddUnwindTable(t)
		if !errors.Is(err, unix.ENOMEM) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EMFILE) && !errors.Is(err, unix.ENFILE) {
			return id, err
		}
		r.mu.Lock()
		idle := r.idle(r.opts.Now())
		r.mu.Unlock()
		if len(idle) == 0 {
			return 0, fmt.Errorf("%w: %w", errKernelRoom, err)
		}
		r.remove(idle[0])
	}
}

// roomFor makes room for a table of rows that a user wants: by removing those that no process needs, the
// longest idle first, and then those of a user who has more.
func (r *Rows) roomFor(bytes int, uid uint32) bool {
	for {
		r.mu.Lock()
		if r.bytes+bytes <= r.opts.MaxBytes && len(r.tables) < r.opts.MaxTables {
			r.mu.Unlock()
			return true
		}
		idle := r.idle(r.opts.Now())
		r.mu.Unlock()
		if len(idle) > 0 {
			r.remove(idle[0])
			continue
		}
		surplus := r.surplus(bytes, uid)
		if len(surplus) == 0 {
			return false
		}
		for _, f := range surplus {
			r.evict(f)
		}
	}
}

// idle reports whether no process maps a file, and notes since when. Rows.mu is held.
func (f *File) idle(now int64) bool {
	switch {
	case !f.Unused():
		f.rows.idleSince = 0
	case f.rows.idleSince == 0:
		f.rows.idleSince = now
	}
	return f.rows.idleSince != 0
}

// idle returns the files with rows that no process maps, the longest idle first.
func (r *Rows) idle(now int64) (idle []*File) {
	for f := range r.ready {
		if f.idle(now) {
			idle = append(idle, f)
		}
	}
	slices.SortFunc(idle, func(a, b *File) int { return cmp.Compare(a.rows.idleSince, b.rows.idleSince) })
	return idle
}

// sweep removes the rows that have been idle for long, and forgets files that wait for theirs and
// have been idle as long: those of a user whose files are not built would be kept for good.
func (r *Rows) sweep() {
	r.mu.Lock()
	now := r.opts.Now()
	r.wanted = slices.DeleteFunc(r.wanted, func(f *File) bool {
		if !f.idle(now) || now-f.rows.idleSince < int64(keepRows) {
			return false
		}
		f.rows = fileRows{} // the next look asks again
		return true
	})
	idle := r.idle(now)
	n := 0
	for n < len(idle) && now-idle[n].rows.idleSince >= int64(keepRows) {
		n++
	}
	r.mu.Unlock()
	for _, f := range idle[:n] {
		r.remove(f)
	}
}

func (r *Rows) remove(f *File) { r.replace(f, fileRows{}) }

// replace takes the rows of a file back.
func (r *Rows) replace(f *File, by fileRows) {
	r.mu.Lock()
	if _, ok := r.ready[f]; !ok {
		r.mu.Unlock()
		return
	}
	id, file := f.rows.ID, f.rows.kernel
	r.released++
	by.refusedAt, by.users = r.released, f.rows.users
	delete(r.ready, f)
	f.rows = by
	r.mu.Unlock()
	r.dropTable(id, file)
}

// dropTable takes rows back from a file, and gives their memory back when no other has them.
func (r *Rows) dropTable(id record.TableID, file record.FileKey) {
	r.placing.Lock()
	defer r.placing.Unlock()
	var err error
	switch last, placed := r.release(id, file); {
	case last:
		err = r.opts.Tables.RemoveUnwindTable(id)
	case placed:
		err = r.opts.Tables.RemoveFileRows(file, id)
	}
	if err != nil {
		r.opts.Logger.Debug("Unwind rows cannot be removed.", zap.Error(err))
	}
}

// waiting returns how many files wait to be built.
func (r *Rows) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.wanted)
}

// RowsStats counts what was built since the beginning, and what there is.
type RowsStats struct {
	Files   int // with rows
	Tables  int // of these; files with equal rows share one
	Bytes   int // of the tables
	Waiting int // files that wait for their rows to be built

	Built, Failed, Refused uint64 // files; refused: for want of room
	Stuck                  uint64 // files that did not answer
	Unplaced               uint64 // files whose rows only processes have that were looked at
}

type rowsCounts struct{ built, failed, refused, stuck, unplaced atomic.Uint64 }

// Stats returns the counts as of now.
func (r *Rows) Stats() RowsStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return RowsStats{
		Files: len(r.ready), Tables: len(r.tables), Bytes: r.bytes, Waiting: len(r.wanted),
		Built: r.counts.built.Load(), Failed: r.counts.failed.Load(), Refused: r.counts.refused.Load(), Stuck: r.counts.stuck.Load(), Unplaced: r.counts.unplaced.Load(),
	}
}

// failed logs a file whose rows cannot be had.
func (r *Rows) failed(f *File, err error) {
	r.opts.Logger.Debug("A file has no unwind rows.", zap.String("file", f.path), zap.Error(err))
}
