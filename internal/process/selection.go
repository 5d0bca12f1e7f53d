//go:build linux

package process

import (
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

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
// each, and is called before Run. What takes longer than atMost is left to Run: a process that ends can keep who reads
// of it.
func (t *Table) Judge(atMost time.Duration) {
	if t.opts.Selection == nil {
		return
	}
	t.mu.RLock()
	known := slices.Collect(maps.Values(t.byPID))
	t.mu.RUnlock()
	type read struct {
		p *Process
		l *look
	}
	looks, over := make(chan read), make(chan struct{})
	defer close(over)
	go func() {
		defer close(looks)
		for _, p := range known {
			select {
			case <-over:
				return
			default:
			}
			// What cannot be read is counted when it is read as a whole.
			l, err := t.beginLook(&subject{id: p.id, pid: p.pid}, workLoad)
			if err != nil || !l.kernel && l.wanted || t.confirm(p.id, p.pid, l) != nil {
				continue
			}
			select {
			case looks <- read{p, l}:
			case <-over:
				return
			}
		}
	}()
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for {
		select {
		case look, more := <-looks:
			if !more {
				return
			}
			d := decide(look.l, t.situation(look.p, false))
			t.apply(look.p, workLoad, look.l, &d)
		case <-timer.C:
			t.log.Warn("Not all processes could be judged before sampling starts: the first samples of others may be missing.", zap.Duration("after", atMost))
			return
		}
	}
}
