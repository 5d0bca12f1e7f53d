//go:build linux

package executable

import (
	"cmp"
	"crypto/sha256"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// keepRows is how long rows stay without a process that maps their file:
// a program that is run again and again need not wait for them each time.
const keepRows = time.Minute

// retryRows is when rows are tried again that the kernel had no room for: others than we may
// have taken it, and given it back.
const retryRows = time.Minute

const (
	// maxWanted bounds the files that wait for their rows; one user's processes ask for half of them at most.
	maxWanted = 4 << 10
	// maxWaiting bounds the processes that are told when a file has its rows, and the users that
	// count for its turn, or that were refused them. The others have them with their next look.
	maxWaiting = 16 << 10
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

// FileRows are the rows of one file.
type FileRows struct {
	ID     record.TableID // 0 as long as they are not there
	Base   uint64         // virtual address of the first block
	Blocks int
}

// asking is a file to build rows from, which a process maps now.
type asking struct {
	asked *File
	by    Asker
}

// fileRows is what there is to know of a file's rows. Guarded by Rows.mu.
type fileRows struct {
	FileRows
	state  rowsState
	kernel record.FileKey // what they were made from, if known
	// asking is what to build them from, and uid the user who wants that. others are what those of further users, at
	// most maxOthers, map for the same.
	asking
	uid    uint32
	others []asking
	// waiting are the sampled processes that map the file, by handle.
	waiting map[uint64]struct{}
	users   map[uint32]struct{} // whose processes want them, or have been refused them
	// refusedAt is the value of Rows.released then. noMemory: that is no matter of what the kernel has room for.
	refusedAt uint64
	noMemory  bool
	retryNs   int64 // when rows are tried again that there was no room for, or whose file could not be read; 0: they are not
	idleSince int64 // when the last process was seen to be gone; 0: there is one
}

// Tables gives the sampling programs unwind rows. Calls come from several goroutines.
type Tables interface {
	// AddUnwindTable loads the rows of a file. It keeps nothing of t, whose memory is given back.
	// An error that is unix.ENOMEM, unix.ENOSPC, unix.EMFILE or unix.ENFILE says that there is no room as things are.
	AddUnwindTable(t *record.UnwindTable) (record.TableID, error)
	// RemoveUnwindTable gives their memory back.
	RemoveUnwindTable(id record.TableID) error
	// SetFileRows has the rows used wherever a process maps a file of which nothing else
	// is known yet, until RemoveFileRows or RemoveUnwindTable; the zero key is the vDSO's. The slice
	// belongs to the callee.
	SetFileRows(file record.FileKey, id record.TableID, texts []record.FileText) error
	RemoveFileRows(file record.FileKey, id record.TableID) error
}

// RowsOptions are what Rows needs.
type RowsOptions struct {
	Tables   Tables
	MaxBytes int // of rows that are kept loaded
	// MaxTables of rows are kept loaded: each holds a descriptor. 0: record.MaxUnwindTables; negative: none.
	MaxTables int
	Memory    *budget.Memory // nil: no limit
	CPU       *budget.CPU    // nil: no limit
	Now       func() int64   // ns
	Logger    *zap.Logger
	// Changed is called with the handles of the processes that waited for rows which are there
	// now, or will not be.
	Changed func(handles []uint64)
}

// Rows decides which files have their rows in the kernel, and builds them. It is safe for
// concurrent use.
type Rows struct {
	opts    RowsOptions
	wake    chan struct{}
	cpuTime func() int64 // of this thread, in ns
	counts  rowsCounts

	placing sync.Mutex // while a file gets a place or leaves it; taken before mu

	mu       sync.Mutex
	wanted   []*File
	shares   shares
	ready    map[*File]struct{}
	tables   map[record.TableID]*sharedRows
	byRows   map[[sha256.Size]byte]record.TableID
	bytes    int
	places   map[uint32]int     // of files, by user
	unplaced map[*File]struct{} // that may get a place
	released uint64             // counts what was removed
}

// NewRows makes rows of no file yet; Run builds them.
func NewRows(opts RowsOptions) *Rows {
	opts.MaxTables = cmp.Or(opts.MaxTables, record.MaxUnwindTables)
	return &Rows{
		opts: opts, wake: make(chan struct{}, 1), cpuTime: threadTime, shares: newShares(),
		ready: map[*File]struct{}{}, tables: map[record.TableID]*sharedRows{}, byRows: map[[sha256.Size]byte]record.TableID{}, places: map[uint32]int{}, unplaced: map[*File]struct{}{},
	}
}

// A Waiter is a process that maps files.
type Waiter struct {
	Handle    uint64   // 0: it only looks
	UID       uint32   // its user
	Container string   // "" for none
	PID       int      // 0: not known
	Mapping   *Mapping // where it maps the file, if the PID is known
}

func (w *Waiter) asker() Asker {
	owner := Owner{w.UID, w.Container}
	if w.PID == 0 {
		return Asker{Owner: owner}
	}
	return w.Mapping.AskedFor(w.PID, owner)
}

// Of returns the rows of a file. ok is false if the file has none. The process is told when
// that changes (RowsOptions.Changed), unless it only looks.
func (r *Rows) Of(f *File, w Waiter) (rows FileRows, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := f
	f = f.origin()
	s := &f.rows
	s.idleSince = 0
	users := map[uint32]struct{}{}
	switch s.state {
	case rowsReady:
		if w.Handle != 0 {
			r.seenBy(f, w.UID)
		}
		return s.FileRows, true
	case rowsNone:
		return FileRows{}, false
	case rowsFailed:
		return FileRows{}, true
	case rowsRefused:
		again := !s.noMemory && s.refusedAt != r.released || s.retryNs != 0 && r.opts.Now() >= s.retryNs
		_, refused := s.users[w.UID] // there may be room for another one
		if w.Handle == 0 || !again && (s.noMemory || refused || len(s.users) >= maxWaiting) {
			return FileRows{}, true
		}
		s.state, s.noMemory = rowsUnknown, false
		if !again {
			users = s.users
		}
	}
	if w.Handle == 0 || asked.closed == asked.places.version() && r.opts.Now() < s.retryNs {
		return FileRows{}, true
	}
	if s.state == rowsUnknown {
		s.users = users
		if !r.mayWant(w.UID) {
			s.state, s.refusedAt, s.retryNs = rowsRefused, r.released, r.opts.Now()+int64(retryRows)
			s.users[w.UID] = struct{}{}
			r.counts.refused.Add(1)
			return FileRows{}, true
		}
		s.state = rowsWanted
		s.asking, s.uid = asking{asked, w.asker()}, w.UID
		s.waiting = map[uint64]struct{}{}
		r.wanted = append(r.wanted, f)
		r.Wake()
	}
	s.askAlso(asked, &w)
	if len(s.waiting) < maxWaiting {
		s.waiting[w.Handle], s.users[w.UID] = struct{}{}, struct{}{}
	}
	return FileRows{}, true
}

// mayWant reports whether there is room for one more file that a user's process asks for. r.mu is held.
func (r *Rows) mayWant(uid uint32) bool {
	if len(r.wanted) < maxWanted/2 {
		return true
	}
	own := 0
	for _, f := range r.wanted {
		if f.rows.uid == uid {
			own++
		}
	}
	return own < maxWanted/2 && len(r.wanted) < maxWanted
}

// Loaded reports whether the rows of a file are there.
func (r *Rows) Loaded(f *File) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return f.origin().rows.state == rowsReady
}

// Wake has Run see whether rows are idle.
func (r *Rows) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// settle notes what a builder has made of a file, and returns the processes that waited. When the builder was given up
// meanwhile, rows count that nobody has asked for since.
func (r *Rows) settle(f *File, result fileRows, by *builder) (handles []uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := !by.file.CompareAndSwap(f, nil)
	if late && (result.state != rowsReady || f.rows.state != rowsUnknown) {
		return nil, false
	}
	if f.rows.users == nil { // sweep has forgotten who wanted them
		uid := by.uid.Load()
		f.rows.uid, f.rows.users = uid, map[uint32]struct{}{uid: {}}
	}
	return r.settled(f, result), true
}

// settled is settle of what counts. r.mu is held.
func (r *Rows) settled(f *File, result fileRows) (handles []uint64) {
	for h := range f.rows.waiting {
		handles = append(handles, h)
	}
	if result.state == rowsUnknown {
		f.rows.asked.closed = f.rows.asked.places.version()
	}
	result.refusedAt, result.uid, result.users = r.released, f.rows.uid, f.rows.users
	if result.state == rowsReady {
		result.users = seen(result.users)
		r.ready[f] = struct{}{}
	}
	f.rows = result
	return handles
}
