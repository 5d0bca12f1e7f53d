//go:build linux

package process

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const (
	// buildShare bounds the share of one CPU that building rows takes, to one in so many
	// for small files and to as much for large ones: what takes seconds, and waits for a
	// multiple of that, must not hold up what takes milliseconds.
	buildShare = 4
	smallFile  = 8 << 20
	// keepRows is how long rows stay without a process that maps their file:
	// a program that is run again and again need not wait for them each time.
	keepRows = time.Minute
	// memoryDelay is how long building waits when memory is scarce, before it looks again.
	memoryDelay = time.Second
)

// rowsState is what is known of the rows of a file.
type rowsState uint8

const (
	rowsUnknown rowsState = iota // nobody has asked
	rowsWanted                   // waiting to be built
	rowsReady
	rowsNone    // the file describes no code
	rowsFailed  // the file cannot be read
	rowsRefused // there was no room
)

// fileRows are the rows of one file. Guarded by rows.mu.
type fileRows struct {
	state  rowsState
	id     record.TableID
	base   uint64 // virtual address of the first block
	blocks int
	kernel record.FileKey // what they were made from, if known
	// asked is the file to build them from: one that a process maps now.
	asked *File
	// waiting are the sampled processes that map the file.
	waiting map[uint64]struct{} // by handle
	// refusedAt is the value of rows.released then.
	refusedAt uint64
	idleSince int64 // when the last process was seen to be gone; 0: there is one
}

// rows decides which files have their rows in the kernel.
type rows struct {
	max  int // bytes
	wake chan struct{}

	mu       sync.Mutex
	wanted   []*File
	ready    map[*File]struct{}
	tables   map[record.TableID]*sharedRows
	bytes    int
	released uint64 // counts what was removed
}

func newRows(maxBytes int) *rows {
	return &rows{max: maxBytes, wake: make(chan struct{}, 1), ready: map[*File]struct{}{}, tables: map[record.TableID]*sharedRows{}}
}

// of returns the rows of a file, whose id is 0 as long as they are not there. ok
// is false if the file has none. The process is told when that changes, unless it
// only looks: handle 0.
func (r *rows) of(f *File, handle uint64) (fr fileRows, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := f
	f = f.origin()
	s := &f.rows
	switch s.state {
	case rowsReady:
		s.idleSince = 0
		return *s, true
	case rowsNone:
		return fileRows{}, false
	case rowsFailed:
		return fileRows{}, true
	case rowsRefused:
		if handle == 0 || s.refusedAt == r.released {
			return fileRows{}, true
		}
		s.state = rowsUnknown
	}
	if handle == 0 || asked.closed == asked.places.version() {
		return fileRows{}, true
	}
	if s.state == rowsUnknown {
		s.state = rowsWanted
		s.asked = asked
		s.waiting = map[uint64]struct{}{}
		r.wanted = append(r.wanted, f)
		r.signal()
	}
	s.waiting[handle] = struct{}{}
	return fileRows{}, true
}

// loaded reports whether the rows of a file are there.
func (r *rows) loaded(f *File) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return f.origin().rows.state == rowsReady
}

func (r *rows) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// buildTimes are when small and large files may be built again.
type buildTimes [2]int64

func (b *buildTimes) of(f *File) *int64 {
	if f.key.Size <= smallFile {
		return &b[0]
	}
	return &b[1]
}

// next takes the file that the most sampled processes wait for, of these the smallest,
// among those that may be built now. If there is none, it says in how many ns there will
// be, or -1 if none waits.
func (r *rows) next(times *buildTimes, now int64) (f *File, waitNs int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	best := -1
	waitNs = -1
	for i, f := range r.wanted {
		if wait := *times.of(f) - now; wait > 0 {
			if waitNs < 0 || wait < waitNs {
				waitNs = wait
			}
			continue
		}
		if best < 0 || f.moreWantedThan(r.wanted[best]) {
			best = i
		}
	}
	if best < 0 {
		return nil, waitNs
	}
	f = r.wanted[best]
	last := len(r.wanted) - 1
	r.wanted[best] = r.wanted[last]
	r.wanted[last] = nil
	r.wanted = r.wanted[:last]
	return f, 0
}

func (f *File) moreWantedThan(g *File) bool {
	if a, b := len(f.rows.waiting), len(g.rows.waiting); a != b {
		return a > b
	}
	return f.key.Size < g.key.Size
}

// settle notes what became of a file and returns the processes that waited.
func (r *rows) settle(f *File, result fileRows) (handles []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for h := range f.rows.waiting {
		handles = append(handles, h)
	}
	if result.state == rowsUnknown {
		f.rows.asked.closed = f.rows.asked.places.version()
	}
	result.refusedAt = r.released
	f.rows = result
	if result.state == rowsReady {
		r.ready[f] = struct{}{}
	}
	return handles
}

// build makes rows until the context ends. It has a worker of its own: a large
// file takes seconds, which labels need not wait for.
func (w *worker) build(ctx context.Context, t *Table) {
	runtime.LockOSThread() // whose CPU time is counted: on a busy machine, the time that passes is not spent here
	defer runtime.UnlockOSThread()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var times buildTimes
	for ctx.Err() == nil && !w.stuck.Load() {
		w.sinceNs.Store(max(t.now(), 1))
		t.sweepRows()
		var f *File
		waitNs := int64(t.rowsDelay())
		if waitNs == 0 {
			f, waitNs = t.rows.next(&times, t.now())
		}
		if f != nil {
			began := threadTime()
			t.buildRows(f)
			spent := threadTime() - began
			t.opts.CPU.Spend(budget.Rows, time.Duration(spent))
			*times.of(f) = t.now() + (buildShare-1)*spent
		}
		w.sinceNs.Store(0)
		if f != nil {
			continue
		}
		var pause <-chan time.Time
		if waitNs > 0 {
			timer.Reset(time.Duration(waitNs))
			pause = timer.C
		}
		select {
		case <-ctx.Done():
		case <-t.rows.wake:
		case <-pause:
		}
	}
}

// rowsDelay is how long building has to wait for CPU time or for memory.
func (t *Table) rowsDelay() time.Duration {
	if t.rows.waiting() == 0 {
		return 0
	}
	if t.opts.Memory.Pressure() >= budget.Scarce {
		return memoryDelay
	}
	return t.opts.CPU.Delay(budget.Rows)
}

// threadTime is the CPU time of the calling thread in ns.
func threadTime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) // this clock always exists
	return ts.Nano()
}
