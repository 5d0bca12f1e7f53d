//go:build linux

package process

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const (
	// execDuration bounds the time from the switch of a process's memory by an
	// exec to the event that tells of it: what was read in between is the new
	// image's already. Loading an executable takes that long only from a slow disk.
	execDuration = 200 * time.Millisecond
	// sampleDelay bounds the time that a sample takes from the interrupt to
	// Lookup, and what waits for a name to Hold. It stands for the time of an exec that is known from a sample only.
	sampleDelay = 2 * time.Second
	// submitDelay bounds the part of it until the sample is submitted: a virtual CPU may not run meanwhile.
	submitDelay = 100 * time.Millisecond
	// exitPeriods of sampling may pass until a process that has exited is sampled: its last thread still
	// closes files and frees memory.
	exitPeriods = 2
)

// Table knows the processes of the host. Make one with NewTable.
type Table struct {
	reader
	rows     *executable.Rows
	programs *knownPrograms
	overflow *Process    // stands for all that find no room
	over     atomic.Bool // Run has ended

	mu       sync.RWMutex
	byID     map[record.ProcessID]*Process
	byHandle map[uint64]*Process // also those that have left the table and are held
	byPID    map[int]*Process    // the newest image, unless it has exited
	newest   map[uint32]*Process // by TGID, exited or not
	exited   []ended             // those that samples have come of, in the order of their ends and of exitedIn
	ended    []ended             // the others, in the order of their ends
	handles  uint64
	interval uint64
	jobs     *jobs
	hanging  hanging
	spares   spares
	passing  passing
	// pastFiles are in use while batches may have samples of them: by the interval in which they went last.
	pastFiles map[pastFile]uint64
	// forgetting is how many have ended of which something is still to be taken back.
	forgetting int
	// functionsInterval counts the calls of HandedOver.
	functionsInterval atomic.Uint64
	// userBytes are what processes take, by user id. Guarded by mu.
	userBytes map[uint32]int
	// functionUsers are those whose processes have functions, by user id. Guarded by mu.
	functionUsers map[uint32]*userFunctions
	// lost says that mappings were lost since the last search for them began, lostBeforeNs is when
	// that will have ended.
	// mappingsLostNs is when the last were known to be.
	lost           bool
	lostBeforeNs   int64
	mappingsLostNs int64
	passes         int // of rescan
}

// NewTable makes an empty table.
func NewTable(opts Options) *Table {
	t := &Table{
		overflow:  &Process{},
		byID:      map[record.ProcessID]*Process{},
		byHandle:  map[uint64]*Process{},
		pastFiles: map[pastFile]uint64{},
		byPID:     map[int]*Process{},
		newest:    map[uint32]*Process{},
		hanging:   hanging{users: map[uint32]*userLooks{}},
		passing:   passing{lives: map[life]told{}},

		userBytes: map[uint32]int{},

		functionUsers: map[uint32]*userFunctions{},
	}
	t.reader.init(opts)
	opts = t.opts
	t.jobs = newJobs(opts.Alarm, opts.Now)
	t.jobs.maxOwing = max(opts.Workers-1, 1)
	t.programs = newKnownPrograms(t)
	t.rows = executable.NewRows(executable.RowsOptions{
		Tables: opts.Unwinder, MaxBytes: opts.MaxRowBytes, MaxTables: opts.MaxRowTables, Memory: opts.Memory, CPU: opts.CPU,
		Now: opts.Now, Logger: opts.Logger, Changed: t.rowsChanged,
	})
	t.overflow.info.Store(&Info{})
	return t
}

// Lookup returns the process of a sample, which it enters if it is not known
// yet; comm then names it, and uid says whose it is, until more is known. pid is as the collector's PID
// namespace sees it, or 0. It does no I/O, and for a known process allocates
// nothing. It returns the process with handle 0 if there is no room.
func (t *Table) Lookup(id record.ProcessID, pid int, uid uint32, comm []byte) *Process {
	t.mu.RLock()
	p := t.byID[id]
	t.mu.RUnlock()
	if p != nil && p.lately.Load() {
		return p
	}
	return t.noteSample(id, pid, uid, comm)
}

// noteSample makes the information of a process that is sampled for the first
// time, or after a pause, more urgent than that of others.
func (t *Table) noteSample(id record.ProcessID, pid int, uid uint32, comm []byte) *Process {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byID[id]
	if p == nil {
		info := &Info{PID: pid, Name: validUTF8(string(comm))}
		// Without an event of it, all that is known of the exec that has
		// replaced the process's older image is that it has happened.
		if p = t.admit(id, pid, uid, info, replacement{ns: t.now() - int64(sampleDelay)}, true); p == nil {
			return t.overflow
		}
	} else if info := p.Info(); info.Name == "" {
		named := *info
		named.Name = validUTF8(string(comm))
		p.birth = &named
		p.show()
	}
	t.setUser(p, uid)
	p.lately.Store(true)
	first := !p.sampled.Swap(true)
	if p.exited || p.pid == 0 {
		return p
	}
	if first && !p.Info().Loaded {
		t.jobs.schedule(p, workLoad, urgent)
	} else if first && t.opts.Unwinder != nil {
		t.jobs.schedule(p, workUnwind, urgent)
	}
	if p.overdue {
		t.jobs.schedule(p, workReread, urgent)
	}
	return p
}

// Process returns the process with a handle, until it has been let go and nothing holds it.
func (t *Table) Process(handle uint64) (*Process, bool) {
	if handle == 0 {
		return t.overflow, true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	p, ok := t.byHandle[handle]
	return p, ok
}

// admit enters a new process of a user, which may have replaced the older image of a process. It returns nil if there
// is no room, and for one that is sampled none can be made.
func (t *Table) admit(id record.ProcessID, pid int, uid uint32, birth *Info, by replacement, sampled bool) *Process {
	t.letGoUnsampled()
	t.letGoSampled()
	if t.full() {
		if t.makeRoom(sampled); t.full() {
			t.refuse(id, pid, sampled)
			t.endOlder(id, by)
			return nil
		}
	}
	t.handles++
	p := &Process{id: id, handle: t.handles, pid: pid}
	older := t.newest[id.TGID]
	same := older != nil && older.id.StartNs == id.StartNs // by exec, before or after it
	if uid == nobody && same {
		uid = older.user()
	}
	p.uid.Store(uid)
	p.lessonNs.Store(noLesson)
	p.birth = birth
	p.info.Store(birth)
	t.byID[id] = p
	t.byHandle[p.handle] = p
	t.account(p)
	if older != nil && !id.After(older.id) {
		t.finish(p) // a late sample of an image that has been replaced
		return p
	}
	t.endOlder(id, by)
	if same {
		p.older = older
		p.quarantinedNs = older.quarantinedNs
	}
	t.newest[id.TGID] = p
	if pid != 0 {
		t.byPID[pid] = p
	}
	return p
}

// endOlder notes that a process has ended, or was replaced by an exec, since there is a newer one,
// which may have found no room.
func (t *Table) endOlder(id record.ProcessID, by replacement) {
	older := t.newest[id.TGID]
	if older == nil || !id.After(older.id) {
		return
	}
	missed := !older.exited && (older.id.StartNs != id.StartNs || by.ns == 0)
	t.finish(older)
	if missed { // by the programs, too, which would have taken back what it began with
		t.forgetRunning(older.id, older.pid)
	}
	older.older = nil
	if older.id.StartNs == id.StartNs && older.replacedNs == 0 { // else an event has told when
		t.replaced(older, id, by)
	}
}

// replaced takes back what was read of a process that may be of the image that has replaced it, which has an id.
func (t *Table) replaced(p *Process, id record.ProcessID, by replacement) {
	if id.ExecID != p.id.ExecID+1 {
		by.startStack = 0 // there was another image in between
	}
	if p.discardSince(by) {
		t.counts.discarded.Add(1)
	}
	t.account(p)
}

// finish notes that a process will not run any more.
func (t *Table) finish(p *Process) {
	if p.exited {
		return
	}
	if p.current.info == nil {
		t.programs.noteWithout(p, nil)
	}
	if p.sampled.Load() {
		t.exited = append(t.exited, ended{p, t.now()})
	} else {
		t.ended = append(t.ended, ended{p, t.now()})
	}
	t.withdraw(p)
	t.forgetExited(p)
}

// withdraw has nothing done for a process any more.
func (t *Table) withdraw(p *Process) {
	p.exited, p.exitedIn = true, t.interval
	if t.byPID[p.pid] == p {
		delete(t.byPID, p.pid)
	}
	t.jobs.cancel(p)
	t.functionsEnd(p)
}

// ended is a process that has exited, and when that was known.
type ended struct {
	process *Process
	ns      int64
}

// letGoUnsampled lets go of the processes whose last sample would have come by now if there
// were one: where short programs come and go, most have none.
func (t *Table) letGoUnsampled() {
	if len(t.ended) == 0 {
		return
	}
	before := t.now() - int64(sampleDelay)
	if t.opts.SamplesRead != nil {
		before = max(before, t.opts.SamplesRead()-int64(max(submitDelay, exitPeriods*t.opts.SamplePeriod)))
	}
	for len(t.ended) > 0 && (t.ended[0].ns <= before || t.allRead(t.ended[0].process)) {
		t.letGoEnded()
	}
}

// letGoEnded lets go of the first of ended, and reports that, unless a sample has come of it.
func (t *Table) letGoEnded() bool {
	p := t.ended[0].process
	t.ended[0] = ended{}
	t.ended = t.ended[1:]
	if p.sampled.Load() {
		p.exitedIn = t.interval
		t.exited = append(t.exited, ended{p, t.now()})
		return false
	}
	t.letGo(p)
	return true
}

// letGoSampled lets go of the processes whose samples are all in batches, which hold what they need (Hold): batches may
// come minutes apart, in which as many end as there are places. Where nothing is read, it is for EndInterval to tell.
func (t *Table) letGoSampled() {
	if len(t.exited) == 0 {
		return
	}
	before := int64(math.MinInt64)
	if t.opts.SamplesRead != nil {
		before = t.opts.SamplesRead() - int64(max(sampleDelay, exitPeriods*t.opts.SamplePeriod))
	}
	for len(t.exited) > 0 && (t.exited[0].ns <= before || t.allRead(t.exited[0].process)) {
		t.letGo(t.exited[0].process)
		t.exited[0] = ended{}
		t.exited = t.exited[1:]
	}
}

// allRead reports whether the samples of a process that has exited have been read.
func (t *Table) allRead(p *Process) bool { return p.exitedIn+2 <= t.interval }

// EndInterval is called when the samples of an interval have been read, whether or not they have been
// handed over: the processes that had exited before the last such call leave the table, if they have not yet.
func (t *Table) EndInterval() {
	t.mu.Lock()
	t.interval++
	t.letGoUnsampled()
	t.letGoSampled()
	t.forgetFiles()
	t.mu.Unlock()
	t.files.EndInterval()
	if t.opts.Memory.Pressure() >= budget.Tight {
		t.counts.filesDropped.Add(uint64(t.files.DropUnused(t.rows)))
	}
	t.rows.Wake()
}

// letGo takes its place in the table from a process; what is known of it stays while it is held.
func (t *Table) letGo(p *Process) {
	if !t.has(p) {
		return // expelled meanwhile
	}
	delete(t.byID, p.id)
	if newest := t.newest[p.id.TGID]; newest == p {
		delete(t.newest, p.id.TGID)
	} else if newest != nil && newest.older == p {
		newest.older = nil
	}
	if p.holds == 0 {
		t.forgetAll(p)
	}
}
