//go:build linux

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// errReplaced says that a PID belongs to another process by now.
var errReplaced = errors.New("PID belongs to another process")

// errOtherThread says that the thread that was read has ended, and others of the process have not, or that it
// runs another program by now: the process is read again.
var errOtherThread = errors.New("the thread that was read has ended, or runs another program")

// errEnding says that a process is exiting and has no memory any more, so that what is
// known of it stays as it is. The event of its exit is still to come.
var errEnding = fmt.Errorf("%w: it is exiting and has no memory any more", procfs.ErrNoProcess)

// reader reads processes. It tells nobody: what came of it is decided and applied by others.
// Files are remembered in its cache, though, and what was done is counted.
type reader struct {
	opts       Options
	now        func() int64
	log        *zap.Logger
	bootOffset int64 // of our time namespace, ns
	files      *executable.Cache
	counts     counts
	lines      lines
	ending     atomic.Bool // looks are to end soon
}

func (r *reader) init(opts Options) {
	opts.setDefaults()
	offset, err := opts.FS.BootTimeOffset()
	if err != nil {
		opts.Logger.Warn("The time namespace is not known: processes may not be recognized.", zap.Error(err))
	}
	r.opts, r.now, r.log, r.bootOffset = opts, opts.Now, opts.Logger, offset
	r.files = executable.NewCache(executable.Options{
		FS: opts.FS, NameFile: opts.NameFile, MaxFiles: opts.MaxFiles, MaxDescriptors: opts.MaxDescriptors, Memory: opts.Memory,
		Now: opts.Now,
	})
}

// extent is how much was read of a process.
type extent uint8

const (
	extentNone    extent = iota
	extentOwner          // who it is: it is not wanted, so that its mappings and sources were not looked for
	extentReduced        // for want of memory, not all of it is kept
	extentWhole
)

// subject is a process to look at, and what is known of it.
type subject struct {
	id    record.ProcessID
	pid   int
	read  remembered
	owner executable.Owner // as known before
	who   *who             // read just before this look; nil if it was not
	// presumed are the label sources that it began with.
	presumed []record.LabelSource
	// memoryShort: little memory is left for what is new of its user's processes.
	memoryShort bool
	coming      coming // what has come to another's place
	interval    uint64 // of the table
	order       labelsource.Order
}

// remembered is what a worker keeps of a process from one look to the next. It is a value: a
// look that comes to nothing leaves the one before.
type remembered struct {
	extent   extent
	info     *Info // as read last, whether it was shown or not; nil: never
	program  procfs.FileID
	resolver labelsource.Resolver
	context  contextState
	attempt  int // index into retryDelays
	// unread tells that files could not be read that may be later; reopen says when these are
	// tried again.
	unread bool
	reopen executable.Backoff
	// toldEnvironment: what the resource in its environment lacks has been counted and logged.
	toldEnvironment bool
	// execPages are mapped executable and not writable.
	execPages uint64
}

// look is what one look at a process has read.
type look struct {
	tid     int // of the thread that it was read from
	beganNs int64
	kernel  bool // a thread of the kernel
	full    bool // all was read, not only what may have changed
	wanted  bool // as far as who it is decides that; else no more was read
	owner   executable.Owner
	ownedNs int64 // when that was read, 0: it was not

	info    Info
	sources []record.LabelSource
	// startStack is that of the process when all was read (procfs.Stat).
	startStack uint64
	// changed: the mappings; newContext: the process context.
	changed, newContext bool
	succession
	coming coming // if some came to the place of others
	// loading and updating: a library is being loaded, a context written. There may be more
	// to find soon.
	loading, updating bool
	// again: a file was no use just now, which may pass; it is tried again soon.
	again       bool
	memoryShort bool  // as of its subject
	refused     error // why the mappings may not be read, so that none are known

	read remembered
}

// look reads a process: who it is, and, if that is wanted, all that has changed.
func (r *reader) look(sub *subject, w work, s *scratch) (*look, error) {
	l, err := r.beginLook(sub, w)
	if err != nil || l.kernel || !l.wanted {
		return l, err
	}
	return l, r.finishLook(l, sub, s)
}

// kernelName leaves out of the name of a worker of the kernel what it works on, or did last: it would be called
// something else at each look (wq_worker_comm in kernel/workqueue.c).
func kernelName(comm string) string {
	if place, rest, ok := strings.Cut(comm, ":"); ok && strings.HasPrefix(place, "kworker/") && !strings.Contains(place, "-") {
		if end := strings.IndexAny(rest, "+-"); end >= 0 {
			return comm[:len(place)+1+end]
		}
	}
	return comm
}

// beginLook reads who a process is.
func (r *reader) beginLook(sub *subject, w work) (*look, error) {
	l := &look{beganNs: r.now(), owner: sub.owner, read: sub.read, memoryShort: sub.memoryShort}
	tid, stat, err := r.identify(sub.id, sub.pid)
	if err != nil {
		return nil, err
	}
	l.tid = tid
	if stat.KernelThread {
		l.kernel = true
		l.info = Info{Loaded: true, PID: sub.pid, Name: kernelName(validUTF8(stat.Comm)), KernelThread: true}
		l.wanted = r.opts.Selection.wants(&l.info)
		return l, nil
	}
	known := &sub.read
	l.full = known.info == nil || w&workLoad != 0 || known.extent == extentReduced && !sub.memoryShort
	if !l.full {
		l.info = *known.info
	}
	l.wanted = true
	if l.full || r.opts.Selection != nil {
		if err := r.describe(l, sub, &stat); err != nil {
			return nil, err
		}
		l.wanted = r.opts.Selection.wants(&l.info)
	} else if sub.who != nil {
		l.info.setOwner(sub.who)
	}
	l.full = l.full || known.extent == extentOwner
	return l, nil
}

// finishLook reads what a process has mapped and publishes.
func (r *reader) finishLook(l *look, sub *subject, s *scratch) error {
	switch err := r.readMappings(l.tid, s); {
	case errors.Is(err, fs.ErrPermission) && (l.read.info == nil || len(l.read.info.Mappings) == 0):
		l.refused = err // by a security module, or for want of a capability: who it is, is known all the same
	case err != nil:
		return err
	}
	l.read.execPages = s.execPages()
	r.readProgram(l)
	l.info.Mappings, l.changed = r.execMappings(l, s)
	s.addMoved(l.info.Mappings)
	r.follow(l, sub)
	l.again = l.again || l.programChanged()
	if l.changed && l.read.extent != extentReduced {
		l.read.attempt = 0
	}
	if l.full {
		r.counts.loads.Add(1)
	} else {
		r.counts.rereads.Add(1)
	}
	memory := r.opts.memory(l.tid)
	l.updating = r.readContext(l, memory, s.contexts)
	l.newContext = l.info.setContext(&l.read.context)
	l.read.resolver.Begin(sub.order)
	l.sources, l.info.Sources, l.loading = l.read.resolver.Resolve(&labelsource.Process{
		Memory: memory, PID: l.tid, Owner: l.owner, Program: l.read.program, Mappings: l.info.Mappings, Files: s.files,
		Context: l.read.context.context, Presumed: sub.presumed, NowNs: r.now(),
	})
	l.info.order = l.read.resolver.Order()
	if l.read.resolver.News() {
		l.read.attempt = min(l.read.attempt, newsAttempt)
	}
	l.loading = l.loading || l.again
	r.explain(l)
	if l.full {
		if err := r.describeMore(l); err != nil {
			return err
		}
		l.info.Loaded = true
	}
	return nil
}

// follow tells what has become of the mappings that a process had at the last look.
func (r *reader) follow(l *look, sub *subject) {
	before := l.read.info
	if before == nil || !l.changed && !l.full && len(before.past) == 0 {
		return
	}
	l.coming = sub.coming
	l.succession = l.info.follow(before, sub.coming, sub.interval)
}

// explain logs, once for each file and kind of labels, why there are none, up to a bound for each user. A program that is
// not mapped has just replaced the one that was: what is mapped was read before.
func (r *reader) explain(l *look) {
	info := &l.info
	program := info.maps(l.read.program)
	for i := range info.Sources {
		s := &info.Sources[i]
		switch {
		case s.State == labelsource.Active, s.State == labelsource.NotRelocated, s.State == labelsource.Duplicate,
			s.State == labelsource.NotProgram && !program:
			continue
		}
		for j := range info.Mappings {
			if f := info.Mappings[j].File; f != nil && f.Path() == s.Path && r.lines.room(l.owner.UID, lineSource) && f.FirstTime(int(s.ABI)) {
				r.say(l.owner, lineSource, "A label source cannot be read.", zap.String("file", s.Path),
					zap.Stringer("abi", s.ABI), zap.Stringer("state", s.State), zap.String("reason", s.Err))
			}
		}
	}
}

// identify makes sure that the PID still belongs to the process. It returns the
// thread to read from: the leader, or another one if the leader has exited.
func (r *reader) identify(id record.ProcessID, pid int) (tid int, stat procfs.Stat, err error) {
	stat, err = r.opts.FS.Stat(pid)
	if err != nil {
		return 0, stat, err
	}
	want := uint64(int64(id.StartNs)+r.bootOffset) / (uint64(time.Second) / procfs.TicksPerSecond)
	if stat.StartTicks != want {
		return 0, stat, fmt.Errorf("%w: start time %d, not %d", errReplaced, stat.StartTicks, want)
	}
	if !stat.Dead() && !stat.Ending {
		return pid, stat, nil
	}
	tid, err = r.opts.FS.LiveThread(pid)
	if errors.Is(err, procfs.ErrNoProcess) && stat.Ending && !stat.Dead() {
		err = errEnding
	}
	return tid, stat, err
}

// who is what the kernel says of a process's owner.
type who struct {
	uid   uint32
	group procfs.Cgroup
}

func (w *who) owner() executable.Owner {
	return executable.Owner{UID: w.uid, Container: w.group.ContainerID}
}

// setOwner takes over what was read of a process's owner: it may change that at any time.
func (i *Info) setOwner(w *who) {
	i.UID, i.ContainerID, i.PodUID, i.Cgroup = w.uid, w.group.ContainerID, w.group.PodUID, validUTF8(w.group.Path)
}

// who reads whose a process is. If the error is about its cgroup, its user is known all the same.
func (r *reader) who(tid int) (who, error) {
	status, err := r.opts.FS.Status(tid)
	if err != nil {
		return who{uid: nobody}, err
	}
	group, err := r.opts.FS.Cgroup(tid)
	return who{status.UID, group}, err
}

// memfdPath begins what stands for the path of a program that is in memory alone, as that which starts containers
// (runc). It ends with whatever it was called there, which is mostly a path of this very kind.
const memfdPath = "/memfd:"

// describe reads who a process is.
func (r *reader) describe(l *look, sub *subject, stat *procfs.Stat) error {
	w, info := sub.who, &l.info
	if w == nil {
		read, err := r.who(l.tid)
		if err != nil {
			return err
		}
		w = &read
	}
	l.owner, l.ownedNs = w.owner(), r.now()
	info.PID = sub.pid
	info.setOwner(w)
	if sel := r.opts.Selection; sel != nil {
		// A group that has been removed, or lies outside of what is mounted, has none.
		info.CgroupID, _ = sel.Cgroups.ID(w.group.Path)
	}
	info.Name = validUTF8(stat.Comm)
	// Without permission, there is only the command name.
	if exe, _, err := r.opts.FS.Executable(l.tid); err == nil {
		info.Path = validUTF8(exe)
		if !strings.HasPrefix(info.Path, memfdPath) {
			info.Name = path.Base(info.Path)
		}
	}
	return nil
}

// describeMore reads what else is shown of a process, on request.
func (r *reader) describeMore(l *look) error {
	if r.opts.Environment {
		r.readEnvironment(l)
	}
	if r.opts.CommandLineBytes == 0 {
		return nil
	}
	args, _, err := r.opts.FS.CommandLine(l.tid, r.opts.CommandLineBytes)
	if err != nil {
		return err
	}
	for i, arg := range args {
		args[i] = validUTF8(arg)
	}
	l.info.CommandLine = args
	return nil
}

// readEnvironment reads the resource that the environment describes. What it lacks is counted with
// that of process contexts, and logged, once for each process and up to a bound for each user. Without permission, there
// is none.
func (r *reader) readEnvironment(l *look) {
	env, cut, err := r.opts.FS.Environment(l.tid, maxEnvironmentBytes, processctx.EnvServiceName, processctx.EnvResourceAttributes)
	if err != nil {
		return
	}
	resource, leftOut := processctx.FromEnvironment(env[processctx.EnvServiceName], env[processctx.EnvResourceAttributes])
	l.info.Environment = resource
	if cut {
		leftOut++
	}
	if leftOut == 0 || l.read.toldEnvironment {
		return
	}
	l.read.toldEnvironment = true
	r.counts.contextErrors.Add(uint64(leftOut))
	r.say(l.owner, lineEnvironment, "Not all of the resource in a process's environment is read.", zap.Int("pid", l.info.PID),
		zap.Int("left_out", leftOut), zap.Bool("environment_cut", cut))
}

func (r *reader) readMappings(tid int, s *scratch) error {
	err := s.read(r.opts.FS, tid)
	if s.cut {
		r.counts.mappingsCut.Add(1)
	}
	return err
}

// used reports whether processes and files take so many parts of all memory, or all
// parts together have reached a stage.
func (r *reader) used(parts int64, stage budget.Pressure) bool {
	m := r.opts.Memory
	return m != nil && (m.Pressure() >= stage || r.held(parts))
}

// held reports whether processes and files take so many parts of all memory.
func (r *reader) held(parts int64) bool {
	m := r.opts.Memory
	return m != nil && m.Part(budget.OfProcesses)+m.Part(budget.OfFiles) >= m.Limit()/memoryParts*parts
}
