//go:build linux

package process

import (
	"maps"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// Selection says which processes are wanted. Of the others the sampling programs are
// told, so that nothing is read at their samples, and their label sources and
// mappings are not looked for if that cannot change the verdict.
type Selection struct {
	// Wants judges by PID, UID, Path, Cgroup, CgroupID, ContainerID and KernelThread;
	// it is called from several goroutines. nil: all are wanted.
	Wants func(*Info) bool
	// LabelledOnly wants only processes with a label source.
	LabelledOnly bool
	// ByPID tells that Wants looks at the PID. Else the verdict holds for a forked
	// child too, which has everything else from its parent.
	ByPID bool
	// Cgroups is where Info.CgroupID comes from; zero: it is not needed.
	Cgroups procfs.CgroupFS
}

// Verdict says whether samples of a process are wanted. It belongs to an Info.
type Verdict uint8

// The verdicts. Without a Selection none is given.
const (
	VerdictUnknown Verdict = iota // not read yet, or not visible
	VerdictWanted
	VerdictFiltered
)

// wants reports whether a process is wanted unless its labels say otherwise.
func (s *Selection) wants(info *Info) bool {
	return s == nil || s.Wants == nil || s.Wants(info)
}

// judge gives the verdict on a process that is wanted unless its labels say
// otherwise. While a library is being loaded (again), the previous verdict holds: what
// it will be may be known in a millisecond.
func (s *Selection) judge(info *Info, again bool, previous Verdict) Verdict {
	switch {
	case s == nil:
		return VerdictUnknown
	case !s.LabelledOnly || info.activeSources() > 0:
		return VerdictWanted
	case again:
		return previous
	}
	return VerdictFiltered
}

// inherited is the verdict that a forked child starts with.
func (s *Selection) inherited(parent Verdict) Verdict {
	if s == nil || s.ByPID {
		return VerdictUnknown
	}
	return parent
}

// Judge gives a first verdict on all processes that are known, by Selection.Wants
// alone, so that no sample comes before. It reads a few small files of /proc for
// each, and is called before Run.
func (t *Table) Judge() {
	if t.opts.Selection == nil {
		return
	}
	t.mu.RLock()
	known := slices.Collect(maps.Values(t.byPID))
	t.mu.RUnlock()
	for _, p := range known {
		// What cannot be read is counted when it is read as a whole.
		if tid, stat, err := t.identify(p); err == nil {
			_ = t.judge(p, tid, &stat)
		}
	}
}

func (t *Table) judge(p *Process, tid int, stat *procfs.Stat) error {
	if stat.KernelThread {
		t.loadKernelThread(p, stat)
		return nil
	}
	var info Info
	if err := t.describe(p, &info, tid, stat); err != nil || t.opts.Selection.wants(&info) {
		return err
	}
	return t.leaveOut(p, &info)
}

// leaveOut takes note that a process is not wanted, whatever labels it may have.
func (t *Table) leaveOut(p *Process, info *Info) error {
	shown := *info
	shown.Loaded, shown.Verdict = true, VerdictFiltered
	shown.Mappings, shown.Sources = nil, nil
	shown.setContext(&contextState{})
	news := p.load.info == nil || !p.load.leftOut || !sameOwner(p.load.info, &shown)
	t.filter(p)
	if !news {
		return nil
	}
	// Only if the process is still the same, all of that was about it.
	if _, _, err := t.identify(p); err != nil {
		return err
	}
	t.commit(p, &shown)
	p.load.leftOut, p.load.context = true, contextState{}
	p.contextKnown.Store(false)
	t.publishMappings(p, &shown)
	return nil
}

// sameOwner reports whether what a process may change of itself is unchanged.
func sameOwner(a, b *Info) bool {
	return a.UID == b.UID && a.Path == b.Path && a.Cgroup == b.Cgroup && a.CgroupID == b.CgroupID &&
		a.ContainerID == b.ContainerID
}

// filter tells the sampling programs that a process is not wanted, if that is news.
func (t *Table) filter(p *Process) {
	t.mu.RLock()
	known := p.published
	t.mu.RUnlock()
	if known && p.load.filtered {
		return
	}
	p.load.sources, p.load.filtered = nil, true
	t.notePublished(p, t.opts.Publisher.Filter(p.id))
}

// notePublished remembers whether there is something to take back.
func (t *Table) notePublished(p *Process, err error) {
	if err != nil {
		t.publishFailed(p, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.published = err == nil
	if p.published && p.exited {
		// The exit was not told, as there was nothing to take back yet.
		t.schedule(p, workForget, urgent)
	}
}
