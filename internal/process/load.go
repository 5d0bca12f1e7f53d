//go:build linux

package process

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// rereadGap is the least time between two readings of a process because of
// mapping events.
const rereadGap = 20 * time.Millisecond

// retryDelays are the times after which a library that is still being loaded is
// looked at again. Then the next mapping event or periodic pass has to do.
var retryDelays = [...]time.Duration{
	1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6, 1000e6, // ns
}

// errReplaced says that a PID belongs to another process by now.
var errReplaced = errors.New("PID belongs to another process")

// errEnding says that a process is exiting and has no memory any more, so that what is
// known of it stays as it is. The event of its exit is still to come.
var errEnding = fmt.Errorf("%w: it is exiting and has no memory any more", procfs.ErrNoProcess)

// loadState is what a worker remembers of a process. No lock guards it: one
// worker at a time runs a process's job.
type loadState struct {
	info     *Info // as loaded last, whether it was shown or not
	program  procfs.FileID
	resolver resolver
	sources  []record.LabelSource // as published last
	filtered bool                 // published last: not wanted
	leftOut  bool                 // not wanted, so that its sources and mappings were not looked for
	attempt  int                  // index into retryDelays
	context  contextState
	mappings []record.UnwindMapping // as published last
	mapped   bool                   // they were
	// execPages are mapped executable and not writable, as read last and as published last.
	execPages, listedPages uint64
	reduced                bool  // for want of memory, not all is kept
	owner                  owner // as read at ownedNs
	ownedNs                int64 // 0: not yet
	who                    *who  // read for the owner just before this look
}

// run does the work that waits for a process.
func (t *Table) run(p *Process, w work, s *scratch) {
	if w&workForget != 0 {
		t.forget(p)
		return
	}
	if w&workUnwind != 0 {
		t.publishMappings(p, p.load.info)
		if w &^= workUnwind; w == 0 {
			return
		}
	}
	if w&workNamed != 0 {
		defer t.contextSeen(p)
	}
	if w&^workNamed == workContext && t.checkContext(p) {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	watch := t.startWatch()
	retry, err := t.load(p, w, s)
	cost, now := watch.stop(), t.now()
	switch {
	case errors.Is(err, errEnding):
		return
	case errors.Is(err, procfs.ErrNoProcess), errors.Is(err, errReplaced):
		t.notePassing(p)
		return
	case err != nil:
		t.counts.loadErrors.Add(1)
		t.log.Debug("Reading a process.", zap.Int("pid", p.pid), zap.Error(err))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.forgetBirth(now)
	t.account(p)
	if err == nil && !retry {
		t.noteWithout(p, p.load.sources)
	}
	p.notBeforeNs = now + max(int64(rereadGap), cost.gap(costShare))
	p.contextNotBeforeNs = now + cost.gap(contextCostShare)
	if now < p.youngUntilNs {
		p.notBeforeNs, p.contextNotBeforeNs = now+youngGapOf(cost), now+youngGapOf(cost)
	}
	if !p.exited && p.inherited > 0 && now < p.youngUntilNs && !p.published {
		t.schedule(p, workReread, p.youngUntilNs)
	}
	if gap, ok := p.awaitsContext(now); ok {
		t.schedule(p, workReread, now+max(gap, youngGapOf(cost)))
	}
	if retry && !p.exited && p.load.attempt < len(retryDelays) {
		t.counts.retries.Add(1)
		gap := cost.gap(retryCostShare)
		if now < p.youngUntilNs {
			gap = youngGapOf(cost)
		}
		t.schedule(p, workReread, now+max(int64(retryDelays[p.load.attempt]), gap))
		p.load.attempt++
	}
}

// youngGapOf is how long to leave a process alone that has just been started: a third
// of the time at most is spent on it, and that not for long.
func youngGapOf(c cost) int64 { return max(int64(youngGap), 2*c.cpu, c.wall) }

// notePassing notes that a process has gone. Unless it has just exited and the
// event is on its way, the event was lost.
func (t *Table) notePassing(p *Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.exited {
		t.counts.lost.Add(1)
		t.finish(p)
	}
}

// load reads a process, publishes its label sources and shows what is new.
// retry tells that a library is still being loaded.
func (t *Table) load(p *Process, w work, s *scratch) (retry bool, err error) {
	began := t.now()
	tid, stat, err := t.identify(p)
	if err != nil {
		return false, err
	}
	if stat.KernelThread {
		t.counts.loads.Add(1)
		t.loadKernelThread(p, &stat)
		return false, nil
	}
	full := p.load.info == nil || w&workLoad != 0 || t.mayRestore(p.load.reduced)
	before := p.load.info
	if full {
		before = &Info{}
	}
	after := *before
	if full || t.opts.Selection != nil {
		if err := t.describe(p, &after, tid, &stat); err != nil {
			return false, err
		}
		if !t.opts.Selection.wants(&after) {
			return false, t.leaveOut(p, &after)
		}
	}
	full = full || p.load.leftOut
	if err := t.readMappings(tid, s); err != nil {
		return false, err
	}
	p.load.execPages = s.execPages()
	var changed bool
	after.Mappings, changed = t.execMappings(tid, p.load.owner, s, before)
	if changed && !p.load.reduced {
		p.load.attempt = 0
	}
	if full {
		t.counts.loads.Add(1)
		p.load.program, _ = t.opts.FS.StatExecutable(tid) // zero matches no file
	} else {
		t.counts.rereads.Add(1)
	}
	memory := t.opts.memory(tid)
	updating := t.readContext(p, memory, s.contexts)
	newContext := after.setContext(&p.load.context)
	var sources []record.LabelSource
	sources, after.Sources, retry = t.resolve(p, memory, after.Mappings, s.files)
	retry = retry || updating
	again := retry && p.load.attempt < len(retryDelays)
	if after.Verdict = t.opts.Selection.judge(&after, again, p.Info().Verdict); after.Verdict == VerdictFiltered {
		t.filter(p)
	} else {
		t.publish(p, sources, again)
		if !again {
			t.settled(p, sources, p.load.resolver.certain)
		}
	}
	changed = changed || newContext || !slices.Equal(before.Sources, after.Sources) ||
		before.Verdict != after.Verdict || !sameOwner(before, &after)
	if full {
		if err := t.describeMore(&after, tid); err != nil {
			return retry, err
		}
		after.Loaded = true
	}
	t.reduce(p, &after)
	if full || changed {
		// Only if the process is still the same, all of that was about it; and if the thread
		// still has its memory, all of it was there.
		switch now, _, err := t.identify(p); {
		case err != nil:
			return false, err
		case now != tid:
			return true, nil
		}
		t.commit(p, &after)
		p.load.leftOut = false
	}
	t.publishMappings(p, &after)
	if !updating {
		t.contextChecked(p, began, w, newContext)
	}
	return retry, nil
}

// identify makes sure that the PID still belongs to the process. It returns the
// thread to read from: the leader, or another one if the leader has exited.
func (t *Table) identify(p *Process) (tid int, stat procfs.Stat, err error) {
	stat, err = t.opts.FS.Stat(p.pid)
	if err != nil {
		return 0, stat, err
	}
	want := uint64(int64(p.id.StartNs)+t.bootOffset) / (uint64(time.Second) / procfs.TicksPerSecond)
	if stat.StartTicks != want {
		return 0, stat, fmt.Errorf("%w: start time %d, not %d", errReplaced, stat.StartTicks, want)
	}
	if !stat.Dead() && !stat.Ending {
		return p.pid, stat, nil
	}
	tid, err = t.opts.FS.LiveThread(p.pid)
	if errors.Is(err, procfs.ErrNoProcess) && stat.Ending && !stat.Dead() {
		err = errEnding
	}
	return tid, stat, err
}

func (t *Table) loadKernelThread(p *Process, stat *procfs.Stat) {
	info := &Info{Loaded: true, PID: p.pid, Name: validUTF8(stat.Comm), KernelThread: true}
	if sel := t.opts.Selection; sel != nil {
		info.Verdict = VerdictFiltered
		if sel.wants(info) {
			info.Verdict = sel.judge(info, false, VerdictUnknown)
		}
		if info.Verdict == VerdictFiltered {
			t.filter(p)
		} else {
			t.publish(p, nil, false)
		}
	}
	t.commit(p, info)
}

func (t *Table) readMappings(tid int, s *scratch) error {
	err := s.read(t.opts.FS, tid)
	if s.cut {
		t.counts.mappingsCut.Add(1)
	}
	return err
}

// resolve looks for label sources among the mappings of a process.
func (t *Table) resolve(p *Process, memory tlsresolve.Memory, mappings []ExecMapping, all []procfs.Mapping) ([]record.LabelSource, []SourceStatus, bool) {
	images := imagesOf(mappings)
	if len(images) == 0 {
		return nil, nil, false
	}
	env := sourceContext{
		memory:   memory,
		target:   tlsresolve.Target{Machine: hostMachine(runtime.GOARCH)},
		program:  p.load.program,
		mappings: all,
		nowNs:    t.now(),
		presumed: t.presumed(p),
		context:  p.load.context.context,
	}
	env.target.Libc, env.byLoader = loaderOf(mappings, p.load.program)
	env.v8 = func() (v8heap.Layout, error) { return v8Of(mappings, &env) }
	env.target.Modules = tlsresolve.NewModules(&linked{mappings, env.program, env.byLoader})
	sources, statuses, retry := p.load.resolver.resolve(images, &env)
	t.explain(images, statuses)
	return sources, statuses, retry
}

// publish tells the sampling programs about label sources that are news to them. While
// there will be another look, soon, a forked child keeps what it has inherited: sources
// are missing until they have been seen twice, but its threads publish all the time. So
// does a process that began with those of its program.
func (t *Table) publish(p *Process, sources []record.LabelSource, again bool) {
	t.mu.RLock()
	known, inherited, young := p.published, p.inherited, p.youngUntilNs
	t.mu.RUnlock()
	if known && !p.load.filtered && slices.Equal(p.load.sources, sources) {
		return
	}
	if !known && (again || t.now() < young) && len(sources) < inherited {
		return
	}
	p.load.sources, p.load.filtered = sources, false
	t.notePublished(p, t.opts.Publisher.SetLabelSources(p.id, slices.Clone(sources)))
}

// publishFailed counts failures and logs the first: when there is no room for
// one process, there is none for many.
func (t *Table) publishFailed(p *Process, err error) {
	if t.counts.publishErrors.Add(1) == 1 {
		t.log.Warn("Label sources or mappings cannot be published; further failures are only counted.",
			zap.Uint32("tgid", p.id.TGID), zap.Error(err))
	}
}

// describe reads who a process is.
func (t *Table) describe(p *Process, info *Info, tid int, stat *procfs.Stat) error {
	info.PID = p.pid
	w := p.load.who
	p.load.who = nil
	if w == nil {
		read, err := t.who(tid)
		if err != nil {
			return err
		}
		w = &read
	}
	group := w.group
	info.UID, info.ContainerID = w.uid, group.ContainerID
	p.load.owner, p.load.ownedNs = owner{w.uid, group.ContainerID}, t.now()
	if sel := t.opts.Selection; sel != nil {
		info.Cgroup = validUTF8(group.Path)
		// A group that has been removed, or lies outside of what is mounted, has none.
		info.CgroupID, _ = sel.Cgroups.ID(group.Path)
	}
	info.Name = validUTF8(stat.Comm)
	// Without permission, there is only the command name.
	if exe, _, err := t.opts.FS.Executable(tid); err == nil {
		info.Path = validUTF8(exe)
		info.Name = path.Base(info.Path)
	}
	return nil
}

// describeMore reads what else is shown of a process, on request.
func (t *Table) describeMore(info *Info, tid int) error {
	if t.opts.Environment {
		// Without permission, there is none.
		env, err := t.opts.FS.Environment(tid, maxEnvironmentBytes, processctx.EnvServiceName, processctx.EnvResourceAttributes)
		if err == nil {
			info.Environment = processctx.FromEnvironment(env[processctx.EnvServiceName], env[processctx.EnvResourceAttributes])
		}
	}
	if t.opts.CommandLineBytes == 0 {
		return nil
	}
	args, _, err := t.opts.FS.CommandLine(tid, t.opts.CommandLineBytes)
	if err != nil {
		return err
	}
	for i, arg := range args {
		args[i] = validUTF8(arg)
	}
	info.CommandLine = args
	return nil
}

// commit shows what was read, unless an exec may have come in between.
func (t *Table) commit(p *Process, info *Info) {
	endNs := uint64(t.now())
	t.mu.Lock()
	defer t.mu.Unlock()
	p.load.info = info
	if p.tooLate(endNs) {
		t.counts.discarded.Add(1)
		return
	}
	if t.byHandle[p.handle] != p {
		return // let go meanwhile
	}
	p.previous = p.current
	p.setCurrent(read{info, endNs, info.bytes()})
	p.show()
	t.account(p)
}

// explain logs, once for each file and kind of labels, why there are none.
func (t *Table) explain(images []image, statuses []SourceStatus) {
	for i := range statuses {
		s := &statuses[i]
		switch s.State {
		case SourceActive, SourceNotRelocated, SourceDuplicate:
			continue
		}
		for j := range images {
			f := images[j].file
			if f.path == s.Path && f.logged.Or(1<<s.ABI)&(1<<s.ABI) == 0 {
				t.log.Info("A label source cannot be read.", zap.String("file", s.Path),
					zap.Stringer("abi", s.ABI), zap.Stringer("state", s.State), zap.String("reason", s.Err))
			}
		}
	}
}
