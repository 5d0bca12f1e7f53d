//go:build linux

package process

import (
	"sync/atomic"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Process is one process image. Its methods may be called from everywhere.
type Process struct {
	id     record.ProcessID
	handle uint64
	pid    int
	info   atomic.Pointer[Info]

	sampled atomic.Bool // looked up at least once
	lately  atomic.Bool // since the last Table.rescan

	functions functions

	epochs       atomic.Pointer[epochs] // set with Table.mu
	confirmation atomic.Int32           // Confirmation
	uid          atomic.Uint32          // see user; set with Table.mu
	// lessonNs is from when on a sample proves what job.lesson says; noLesson if there is none.
	lessonNs atomic.Int64

	// Of the process context; CLOCK_MONOTONIC.
	contextDueNs, contextCheckedNs atomic.Int64
	contextKnown                   atomic.Bool

	// Guarded by Table.mu.
	job
	lineage
	overdue  bool   // passed over by Table.rescan: looked at when it is sampled again
	exited   bool   // or replaced by an exec
	ended    bool   // an event has told that it has exited as what it is
	exitedIn uint64 // interval
	awaited  bool   // by AwaitVerdicts
	holds    int    // by Table.Hold
	bytes    int    // told to Options.Memory, and counted for bytesUID
	bytesUID uint32
	// functionBytes of these are told to functions.user, who has this user id.
	functionBytes int
	functionUID   uint32

	// Used by the worker that runs the job; there is at most one. Most short programs end before.
	known *workerState
}

// lineage is what is shown for a process, and what was before. Guarded by Table.mu.
type lineage struct {
	// birth is what was known without reading /proc.
	birth *Info
	// current and previous were read; endNs says when reading was done.
	current, previous read
	// older is the image that this one has replaced by exec.
	older *Process
	// execBootNs is when it was executed, CLOCK_BOOTTIME as record.ProcessID.StartNs; 0 if no event has told.
	execBootNs int64
	// startStack is what the kernel told of this image at its exec, or of that which has forked it; 0 if not known.
	startStack uint64
	// replacedNs is when an exec replaced this image, 0 if none did; replacedBy the StartStack of the
	// image that did, 0 if that is not known.
	replacedNs, replacedBy uint64
}

// replacement is an exec, as far as it is known: when it was done, and what procfs.Stat calls StartStack, of
// what it began.
type replacement struct {
	ns         int64 // CLOCK_MONOTONIC
	startStack uint64
}

type read struct {
	info       *Info
	endNs      uint64 // CLOCK_MONOTONIC
	startStack uint64 // of the process when all was read; 0 if not known
	bytes      int    // of info
}

// job is a process's place in the queue. Guarded by Table.mu.
type job struct {
	work  work
	dueNs int64
	// takenDueNs is when what a worker has taken was due.
	takenDueNs int64
	sequence   uint64
	state      jobState
	index      int   // in the queue, if it is there
	turn       *turn // in whose queue it is; nil: in the common one
	owing      bool  // it is one of jobs.owing
	// quarantinedNs is until when the process is left alone, because a look at it hung.
	quarantinedNs int64
	// notBefore bounds the share of time that is spent on one process: on its
	// mappings, and on its context.
	notBeforeNs, contextNotBeforeNs int64
	functionsDueNs                  int64 // when functions may be read again
	// mappedNs is when it mapped something last, as far as that was told while its job ran; 0: nothing.
	// lookedNs is when the last look at what it maps began.
	mappedNs, lookedNs int64
	// fileMappedNs is when the last file was mapped that an event has told of.
	fileMappedNs int64
	youngUntilNs int64
	// countedWithout: it is one of knownPrograms.without.
	countedWithout bool
	// namedLooks are still to be taken at a context that was announced.
	namedLooks  int
	publication publication
	published   int // label sources
	// lingers: more of it is published that its end takes back: mappings, or what was published before it entered again.
	lingers bool
	// inherited is the number of label sources that a fork has copied for it, or that it
	// began with because others of its program had them.
	inherited int
	// program is what it runs, since execNs, if an event has told. forked: its parent executed it.
	program record.FileKey
	execNs  int64
	forked  bool
	// lesson is what was found of it that others of its program could begin with, until it is
	// sure that it was found of it; nil: nothing.
	lesson *lesson
}

// jobState says where a process's job is.
type jobState uint8

const (
	jobIdle    jobState = iota // there is nothing to do
	jobQueued                  // in the queue; also while the process is left alone until quarantinedNs
	jobRunning                 // a worker runs it
	jobWaiting                 // in userLooks.waiting, for its user's turn
)

// work is a set of things to do for a process.
type work uint16

const (
	workLoad      work = 1 << iota // read all there is to know
	workReread                     // read its mappings again, look for label sources
	workContext                    // see whether its context has changed
	workUnwind                     // tell of its mappings with unwind rows
	workForget                     // take back what was published
	workNamed                      // with workContext: the process has announced a new one
	workFunctions                  // read what its runtime's frames stand for
	workTeach                      // let others of its program begin with what was found of it
	workMapped                     // with workReread: it has mapped code
)

// Handle identifies the process in the table, uniquely for the table's life. It
// is not 0, but for the one process that stands for all that found no room.
func (p *Process) Handle() uint64 { return p.handle }

// ID returns the identity of the process.
func (p *Process) ID() record.ProcessID { return p.id }

// Info returns what is known of the process now, never nil.
func (p *Process) Info() *Info { return p.info.Load() }

// worker returns what the worker that runs the job knows of the process.
func (p *Process) worker() *workerState {
	if p.known == nil {
		p.known = &workerState{}
	}
	return p.known
}

// discardSince takes back what was read when the process may already have been
// replaced by an exec. The table is locked.
func (p *Process) discardSince(by replacement) (discarded bool) {
	if ns := uint64(max(by.ns, 1)); p.replacedNs == 0 || ns < p.replacedNs {
		p.replacedNs = ns
	}
	if by.startStack != 0 {
		p.replacedBy = by.startStack
	}
	for p.current.info != nil && p.tooLate(&p.current) {
		p.setCurrent(p.previous)
		p.previous = read{}
		discarded = true
	}
	if p.previous.info != nil && p.tooLate(&p.previous) {
		p.previous = read{}
	}
	if discarded {
		p.show()
	}
	return discarded
}

// setCurrent replaces what was read last, and counts who uses which files.
func (p *Process) setCurrent(r read) {
	p.current.info.useFiles(-1)
	r.info.useFiles(1)
	p.current = r
}

// tooLate reports whether what was read may be another image's. An exec has switched the memory a while
// before its event; where it has not yet when all was read, the stack began where it does in this image. Where that is
// not known, it began elsewhere than in the next one; but it does so, too, while an exec sets it up (setup_arg_pages in
// fs/exec.c, then load_elf_binary in fs/binfmt_elf.c).
func (p *Process) tooLate(r *read) bool {
	own := p.startStack == 0 || r.startStack == p.startStack
	if own && r.startStack != 0 && p.replacedBy != 0 && r.startStack != p.replacedBy {
		return false
	}
	return p.replacedNs != 0 && r.endNs+uint64(execDuration) >= p.replacedNs
}

// infoAt returns what was known at a time (CLOCK_MONOTONIC) before which no exec is still to be told of, or read later
// where the stack began as in this image: with address randomization that is sure. The table is locked.
func (p *Process) infoAt(ns uint64) *Info {
	for _, r := range [...]*read{&p.current, &p.previous} {
		own := r.startStack != 0 && r.startStack == p.startStack
		if r.info != nil && (own || r.endNs <= ns) {
			return r.info
		}
	}
	return p.birth
}

// show makes the last good information visible.
func (p *Process) show() {
	if p.current.info != nil {
		p.info.Store(p.current.info)
	} else {
		p.info.Store(p.birth)
	}
}
