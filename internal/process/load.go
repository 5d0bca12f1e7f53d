//go:build linux

package process

import (
	"errors"
	"runtime"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// rereadGap is the least time between two readings of a process because of
// mapping events.
const rereadGap = 20 * time.Millisecond

// retryDelays are the times after which a library that is still being loaded is
// looked at again. Then the next mapping event or periodic pass has to do.
var retryDelays = [...]time.Duration{
	1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6, 1000e6, // ns
}

// newsAttempt is the index of the delay after which a place is confirmed that is new when all have passed: no sooner
// than what is mapped anew is looked at, since a process can have new places at each look.
const newsAttempt = 4

// workerState is what a worker knows of a process. No lock guards it: one
// worker at a time runs a process's job.
type workerState struct {
	read     remembered
	tid      int                    // the thread that it was read of
	sources  []record.LabelSource   // as published last
	mappings []record.UnwindMapping // as published last, of so many pages
	pages    uint64
	mapped   bool                   // they were
	runtime  *record.RuntimeProcess // as published last; nil: none
	opened   openedRuntime
	owner    executable.Owner // as read at ownedNs
	ownedNs  int64            // 0: not yet
	who      *who             // read for the owner just before this look
}

// run does the work that waits for a process: some of it needs no look, and may be all that waits.
func (t *Table) run(p *Process, w work, s *scratch) {
	if w&workTeach != 0 {
		t.programs.teach(p)
	}
	if w&workForget != 0 {
		t.forget(p)
		return
	}
	if w &^= workTeach; w == 0 {
		return
	}
	if w&workUnwind != 0 {
		t.publishMappings(p, p.worker().read.info)
		if w &^= workUnwind; w == 0 {
			return
		}
	}
	if w&workFunctions != 0 {
		t.readFunctions(p)
		if w &^= workFunctions; w == 0 || t.postpone(p, w) {
			return
		}
	}
	if t.awaitExec(p, w) {
		return
	}
	if w&workNamed != 0 {
		defer t.contextSeen(p)
	}
	if w&^workNamed == workContext && t.checkContext(p) {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	watch, beganNs := t.startWatch(), t.now()
	retry, err := t.load(p, w, s)
	cost := watch.stop()
	if !t.lookFailed(p, err) {
		t.afterLook(p, retry, err, cost, beganNs)
	}
}

// lookFailed takes note of a look that has failed, if it has, and reports whether the process has ended.
func (t *Table) lookFailed(p *Process, err error) (ended bool) {
	switch {
	case errors.Is(err, errEnding):
		return true
	case errors.Is(err, procfs.ErrNoProcess), errors.Is(err, errReplaced):
		t.notePassing(p)
		return true
	case errors.Is(err, errOtherThread):
	case err != nil:
		t.counts.loadErrors.Add(1)
		t.log.Debug("Reading a process.", zap.Int("pid", p.pid), zap.Error(err))
	}
	return false
}

// afterLook decides for how long a process is left alone after a look, by what that has cost, and has it
// looked at again where there may be more to find.
func (t *Table) afterLook(p *Process, retry bool, err error, c cost, beganNs int64) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	p.forgetBirth(now)
	t.account(p)
	if err == nil {
		p.lookedNs = beganNs
		p.sawEpochs(beganNs)
		if !retry && canBe(p.program, p.worker().read.program) {
			t.programs.noteWithout(p, p.worker().sources)
		}
	}
	isYoung, retryGap := now < p.youngUntilNs, c.gap(retryCostShare)
	p.notBeforeNs = now + max(int64(rereadGap), c.gap(costShare))
	p.contextNotBeforeNs = now + c.gap(contextCostShare)
	if isYoung {
		retryGap = youngGapOf(c)
		p.notBeforeNs, p.contextNotBeforeNs = now+retryGap, now+retryGap
	}
	if isYoung && !p.exited && p.inherited > 0 && p.publication == unpublished {
		t.jobs.schedule(p, workReread, p.youngUntilNs)
	}
	if gap, ok := p.awaitsContext(now); ok {
		t.jobs.schedule(p, workReread, now+max(gap, youngGapOf(c)))
	}
	if retry && !p.exited && p.worker().read.attempt < len(retryDelays) {
		t.jobs.schedule(p, workReread, now+max(int64(retryDelays[p.worker().read.attempt]), retryGap))
		p.worker().read.attempt++
	}
}

// awaitsContext returns when to look again at a process that has just begun, has thread
// contexts and has not published what their names are: it may end before a sample asks
// for them. The table is locked.
func (p *Process) awaitsContext(nowNs int64) (gapNs int64, ok bool) {
	if p.exited || p.worker().read.context.context != nil || nowNs >= p.youngUntilNs {
		return 0, false
	}
	threads := slices.ContainsFunc(p.worker().sources, func(s record.LabelSource) bool { return s.ABI.ThreadContext() })
	return (nowNs - (p.youngUntilNs - int64(young))) / 2, threads
}

// youngGapOf is how long to leave a process alone that has just been started: a third
// of the time at most is spent on it, and that not for long.
func youngGapOf(c cost) int64 { return max(int64(youngGap), 2*c.cpu, c.wall) }

// notePassing notes that a process has gone. Unless it has just exited and the
// event is on its way, the event was lost.
func (t *Table) notePassing(p *Process) {
	t.mu.Lock()
	lost := !p.exited
	if lost {
		t.counts.lost.Add(1)
		t.finish(p)
	}
	t.mu.Unlock()
	if lost { // nor has the program at the exit taken back what the process began with
		t.forgetRunning(p.id, p.pid)
	}
}

// load looks at a process, decides what comes of that, and applies it. retry tells that there
// may be more to find soon.
func (t *Table) load(p *Process, w work, s *scratch) (retry bool, err error) {
	sub := &subject{id: p.id, pid: p.pid, read: p.worker().read, owner: p.worker().owner, who: p.worker().who, presumed: t.programs.presumed(p)}
	sub.memoryShort = t.short(sub.owner.UID)
	p.worker().who = nil
	t.mu.RLock()
	sub.coming, sub.interval, sub.order = p.comingEpoch(t.mappingsLostNs), t.interval, p.Info().order
	t.mu.RUnlock()
	l, err := t.look(sub, w, s)
	if errors.Is(err, procfs.ErrNoProcess) {
		// It may only have been the thread that was read, where the first one has ended before.
		if _, _, again := t.identify(p.id, p.pid); again == nil {
			return true, errOtherThread
		}
	}
	if err != nil {
		return false, err
	}
	return t.conclude(p, w, l)
}

// conclude decides what comes of a look and applies it.
func (t *Table) conclude(p *Process, w work, l *look) (retry bool, err error) {
	d := decide(l, t.situation(p, l.memoryShort))
	if d.show {
		if err := t.confirm(p.id, p.pid, l); err != nil {
			return errors.Is(err, errOtherThread), err
		}
	}
	t.apply(p, w, l, &d)
	return d.retry, l.refused
}

// confirm makes sure that a process is still the same: only then all that was read was about it; and if the thread still
// has its memory, all of it was there.
func (r *reader) confirm(id record.ProcessID, pid int, l *look) error {
	tid, stat, err := r.identify(id, pid)
	if err == nil && tid != l.tid {
		err = errOtherThread
	}
	l.startStack = stat.StartStack
	return err
}

func (t *Table) situation(p *Process, memoryShort bool) *situation {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return &situation{
		selection: t.opts.Selection, publication: p.publication, sources: p.worker().sources,
		inherited: p.inherited, young: t.now() < p.youngUntilNs, shown: p.Info().Verdict,
		memoryShort: memoryShort,
	}
}

// apply tells the sampling programs what is news to them, and shows it.
func (t *Table) apply(p *Process, w work, l *look, d *decision) {
	if l.read.extent == extentReduced && p.worker().read.extent != extentReduced {
		t.counts.reduced.Add(1)
	}
	if l.ownedNs != 0 {
		p.worker().owner, p.worker().ownedNs = l.owner, l.ownedNs
	}
	info := p.worker().read.info
	p.worker().read, p.worker().tid = l.read, l.tid
	p.worker().read.info = info // until it is shown
	t.publish(p, d.tell, l.sources)
	if d.settled {
		t.programs.settled(p, l.sources, func(program record.FileKey) bool { return t.certain(l, program) })
	}
	shown := l.info
	if d.show {
		t.commit(p, &shown, l)
	}
	t.publishMappings(p, &shown)
	switch {
	case l.kernel:
	case !l.wanted:
		p.contextKnown.Store(false)
	case !l.updating:
		t.contextChecked(p, l.beganNs, w, l.newContext)
	}
}

// publish tells the sampling programs of a process.
func (t *Table) publish(p *Process, what publication, sources []record.LabelSource) {
	var err error
	switch what {
	case unpublished:
		return
	case publishedSources:
		p.worker().sources = sources
		err = t.opts.Publisher.SetLabelSources(p.id, slices.Clone(sources))
	case publishedFilter:
		p.worker().sources = nil
		err = t.opts.Publisher.Filter(p.id)
	}
	if err != nil {
		t.publishFailed(p.pid, err)
		what = unpublished
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.publication, p.published = what, 0
	if what == publishedSources {
		p.published = len(sources)
	}
	t.forgetExited(p)
}

// publishFailed counts failures and logs the first: when there is no room for
// one process, there is none for many. A worker that was left behind in a process finds the
// maps closed; that is no failure.
func (t *Table) publishFailed(pid int, err error) {
	if t.over.Load() {
		return
	}
	if t.counts.publishErrors.Add(1) == 1 {
		t.log.Warn("What is known of a process finds no room in BPF maps, and its samples have no labels or short stacks: "+
			"raise max_bpf_map_bytes if they are full. Further failures are only counted.",
			zap.Int("pid", pid), zap.Error(err))
	}
}

// commit shows what was read, unless an exec may have come in between.
func (t *Table) commit(p *Process, info *Info, l *look) {
	r := read{info, uint64(t.now()), l.startStack, info.bytes()}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.worker().read.info = info
	if l.replaced {
		p.beginEpoch(&l.coming, l.beganNs)
	}
	if p.tooLate(&r) {
		t.counts.discarded.Add(1)
		return
	}
	if t.byHandle[p.handle] != p {
		return // let go meanwhile
	}
	if p.previous.info == nil || p.current.endNs+uint64(execDuration) <= r.endNs {
		p.previous = p.current // what was read just before may be another image's as well
	}
	if l.cut {
		t.counts.mappingsCut.Add(1)
	}
	t.keepFiles(p.worker().owner.UID, l.gone)
	p.setCurrent(r)
	p.show()
	t.account(p)
}
