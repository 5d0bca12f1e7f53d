//go:build linux

package process

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const (
	// execSettle gives a new image time to map its libraries, and a
	// process that only starts another one time to do so.
	execSettle = time.Millisecond
	// plainSettle is the same for a program whose processes have had no label sources, or begin with all
	// that they need (record.LookWhenSampled). Most
	// that are started again and again have ended by then, and cost nothing. One that is
	// sampled is looked at once, so that its functions have names.
	plainSettle = 250 * time.Millisecond
	// young is how long after an exec a process may still be mapping what it starts
	// with: until then it is looked at again soon when it maps something.
	young    = 50 * time.Millisecond
	youngGap = time.Millisecond
	// forkSettle gives a child time to exec. Until then what it has inherited is right.
	forkSettle = 50 * time.Millisecond
	// lostSpread is the least time in which all processes are looked at when mapping events were
	// lost, lostEach for each of them, maxLostSpread the most: whoever maps much may have events lost
	// all the time.
	lostSpread, lostEach, maxLostSpread = time.Second, 2 * time.Millisecond, 10 * time.Second
)

// HandleEvents takes note of events, in their order. It does no I/O and never blocks. An event
// of a process for which there is no room is counted (Stats.Refused), and the
// process enters with its first sample when there is. Workers are woken for what is left to be
// done after all of them: most short programs have ended by then. It reports whether some tell of
// what the samples of a process may refer to.
func (t *Table) HandleEvents(events []record.Event) (begins bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.jobs.hold()
	t.findPassing(events)
	for i := range events {
		ev := &events[i]
		t.handle(ev)
		switch ev.Kind {
		case record.EventExec, record.EventFork, record.EventSampled:
			begins = begins || !t.passing.has(ev.Process)
		}
	}
	t.jobs.release()
	return begins
}

// HandleEvent is HandleEvents with one.
func (t *Table) HandleEvent(ev record.Event) { t.HandleEvents([]record.Event{ev}) }

func (t *Table) handle(ev *record.Event) {
	switch ev.Kind {
	case record.EventExists:
		t.exists(ev)
	case record.EventExec:
		if !t.passing.has(ev.Process) {
			t.exec(ev)
		}
	case record.EventFork:
		t.fork(ev)
	case record.EventExit:
		if p := t.byID[ev.Process]; p != nil {
			p.ended = true
			t.finish(p)
			t.prove(p)
		}
	case record.EventMapping:
		if p := t.byPID[ev.PID]; p != nil {
			p.mapsFile(int64(ev.FileNs))
			t.mapped(p, int64(ev.TimeNs))
		}
	case record.EventSampled:
		if p := t.byID[ev.Process]; p != nil && !p.exited && p.pid != 0 && !p.Info().Loaded {
			t.jobs.schedule(p, workLoad, urgent)
		}
	case record.EventContextNamed:
		if p := t.byID[ev.Process]; p != nil {
			t.contextNamed(p)
		}
	case record.EventMappingsLost:
		t.mappingsLost()
	case record.EventLost:
		t.finishInvisible()
		t.mappingsLost()
	}
}

func (t *Table) exists(ev *record.Event) {
	if t.byID[ev.Process] != nil {
		return
	}
	info := &Info{PID: ev.PID, KernelThread: ev.KernelThread}
	// If it is what another process has become, nobody has told when.
	if p := t.admit(ev.Process, ev.PID, nobody, info, replacement{startStack: ev.StartStack}, false); p != nil {
		t.scheduleLoad(p, 0)
	}
}

func (t *Table) exec(ev *record.Event) {
	p := t.byID[ev.Process]
	sampled := p != nil
	if sampled {
		// A sample was faster than the event. What may have been read of the
		// process meanwhile was read too early.
		if p.older != nil {
			t.replaced(p.older, ev.Process, replacement{int64(ev.TimeNs), ev.StartStack})
		}
		if p.current.info == nil && p.birth.Path == "" {
			named := *p.birth
			named.setExecPath(validUTF8(ev.Path))
			p.birth = &named
			p.show()
		}
	} else {
		info := &Info{PID: ev.PID, KernelThread: ev.KernelThread}
		info.setExecPath(validUTF8(ev.Path))
		if p = t.admit(ev.Process, ev.PID, nobody, info, replacement{int64(ev.TimeNs), ev.StartStack}, false); p == nil {
			return
		}
	}
	p.startStack = ev.StartStack
	// Not when it is asked for: CLOCK_MONOTONIC stands still while the machine is suspended.
	p.execBootNs = t.bootNow() - (t.now() - int64(ev.TimeNs))
	p.youngUntilNs = t.now() + int64(young)
	settle := execSettle
	if t.programs.begun(p, ev.Program, int64(ev.TimeNs)) && !sampled { // what was told of it before may have kept its sources out
		settle = plainSettle
	}
	late := min(time.Duration(t.now()-int64(ev.TimeNs)), settle) // events are read a few together
	t.scheduleLoad(p, settle-max(late, 0))
}

// setExecPath takes what is known of a program by the path that execve was given, until /proc/PID/exe is read. One
// that is relative, or goes back by "..", has its name; one through a descriptor or a process, such as /proc/self/exe,
// says nothing of it.
func (i *Info) setExecPath(given string) {
	switch {
	case given == "", strings.HasPrefix(given, "/proc/"), strings.HasPrefix(given, "/dev/fd/"):
		return
	case path.IsAbs(given) && path.Clean(given) == given:
		i.Path = given
	}
	i.Name = path.Base(given)
}

func (t *Table) fork(ev *record.Event) {
	p, parent := t.byID[ev.Process], t.byID[ev.Parent]
	if parent != nil && int64(ev.TimeNs) >= parent.lessonNs.Load() {
		t.prove(parent)
	}
	if t.passing.has(ev.Process) {
		return
	}
	sampled := p != nil // a sample was faster than the event
	switch {
	case !sampled:
		uid := uint32(nobody)
		if parent != nil {
			uid = parent.user()
		}
		if p = t.admit(ev.Process, ev.PID, uid, t.born(ev, parent), replacement{int64(ev.TimeNs), ev.StartStack}, false); p == nil {
			return
		}
	case parent != nil && p.current.info == nil:
		comm := p.birth.Name
		p.birth = t.born(ev, parent)
		if p.birth.Name == "" {
			p.birth.Name = comm // of the sample
		}
		p.show()
	}
	if parent != nil {
		p.startStack = parent.startStack
	}
	if presumed := p.inherit(parent); presumed || !sampled { // a look has not settled what is presumed
		t.scheduleLoad(p, forkSettle)
	}
}

// born returns what is known of the child of a process, which may not be known. What was read of the parent since
// the fork may be of what it has executed meanwhile.
func (t *Table) born(ev *record.Event, parent *Process) *Info {
	if parent == nil {
		return &Info{PID: ev.PID, KernelThread: ev.KernelThread}
	}
	inherited := *parent.infoAt(ev.TimeNs)
	inherited.PID = ev.PID
	inherited.Verdict = t.opts.Selection.inherited(inherited.Verdict)
	// The mapping of a process context is not inherited.
	inherited.setContext(&contextState{})
	inherited.forgetEpochs()
	return &inherited
}

// clockSkew bounds what the clock of mapping events, which is read without locks
// (ktime_get_mono_fast_ns), differs from ours.
const clockSkew = time.Millisecond

// mapped looks at a process that has new executable mappings since a time, 0 if that is not
// known, unless a look has seen them, or it will be read as a
// whole: soon, or, when it has just been forked, when it has had time to exec. What an exec
// maps is told before the exec itself.
func (t *Table) mapped(p *Process, ns int64) {
	if ns == 0 {
		ns = t.now()
	}
	switch {
	case p.work&workLoad != 0:
		if now := t.now(); p.youngUntilNs != 0 && now >= p.youngUntilNs {
			t.jobs.schedule(p, workLoad, now) // it maps more than what it starts with
		}
	case p.state == jobRunning: // when that has ended
		p.mappedNs = max(p.mappedNs, ns)
	case ns+int64(clockSkew) > p.lookedNs:
		t.jobs.schedule(p, workReread|workMapped, max(t.now(), p.notBeforeNs))
	}
}

func (t *Table) scheduleLoad(p *Process, after time.Duration) {
	if p.exited || p.pid == 0 {
		return
	}
	t.jobs.schedule(p, workLoad, t.now()+int64(after))
}

// mappingsLost looks at all processes. If that is being done, it is done again afterwards: those
// that it began with may have mapped something since.
func (t *Table) mappingsLost() {
	t.lost, t.mappingsLostNs = true, t.now()
	t.searchLost()
}

// searchLost begins with what mappingsLost has put off, when that is due.
func (t *Table) searchLost() {
	if now := t.now(); t.lost && now >= t.lostBeforeNs {
		spread := min(max(lostSpread, time.Duration(len(t.byPID))*lostEach), maxLostSpread)
		t.lost, t.lostBeforeNs = false, now+int64(spread)
		t.rereadAll(now, spread)
	}
}

// finishInvisible lets go of the processes that the PID namespace does not show: nobody can
// look whether they still run. One that does enters again with its next sample.
func (t *Table) finishInvisible() {
	for _, p := range t.byID {
		if p.pid == 0 {
			t.finish(p)
		}
	}
}

// rereadAll looks at all processes, spread over a time.
func (t *Table) rereadAll(nowNs int64, spread time.Duration) {
	t.reread(slices.Collect(maps.Values(t.byPID)), nowNs, spread)
}

// existsAtOnce is about how many idle processes a pass asks for whether they still run: each takes some
// microseconds of the kernel. Their ends have events; if one is lost, all processes are looked at.
const existsAtOnce = 128

// rescan looks at the processes that were sampled since the last call, at those of which no
// samples come because they are not wanted, and at those that have gone without an event, as far as it asks.
// Nothing depends on what others are like before they are sampled again: they are looked at then.
func (t *Table) rescan(spread time.Duration) {
	var due, idle []*Process
	t.mu.Lock()
	t.passes++
	shares := len(t.byPID)/existsAtOnce + 1 // of the idle ones, each asked for in a pass of its own
	for _, p := range t.byPID {
		if p.lately.Swap(false) || p.Info().Verdict == VerdictFiltered {
			due = append(due, p)
			continue
		}
		p.overdue = true
		if (p.pid+t.passes)%shares == 0 {
			idle = append(idle, p)
		}
	}
	t.mu.Unlock()
	due = append(due, slices.DeleteFunc(idle, func(p *Process) bool { return t.opts.FS.Exists(p.pid) })...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reread(due, t.now(), spread)
}

func (t *Table) reread(all []*Process, nowNs int64, spread time.Duration) {
	step := int64(spread) / int64(len(all)+1)
	for _, p := range all {
		nowNs += step
		if p.exited {
			continue
		}
		p.overdue = false
		t.jobs.schedule(p, workReread, max(nowNs, p.notBeforeNs))
	}
}
