//go:build linux && (amd64 || arm64)

package pipeline

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

// warnOfCgroups names the selectors that match nothing outside of the collector's own cgroup, or
// may miss what is beside it: what is to be left out by them would be sampled.
func warnOfCgroups(log *zap.Logger, m *selectorMatches, fs procfs.FS) {
	warn := func(message string, holds func(*targets.Selector) bool) {
		if named := m.where(holds); len(named) > 0 {
			log.Warn(message, zap.Strings("selectors", named))
		}
	}
	if fs.PrivateCgroups() {
		warn("Selectors by cgroup match no process outside of the collector's container: from its cgroup namespace, paths of other cgroups begin with /.., and ids cannot be had. "+
			"Begin patterns with **/, as in **/nginx.service/**, or give the collector the host's cgroup namespace.",
			(*targets.Selector).OfWholeHierarchy)
		warn("Selectors by cgroup may miss processes: from the cgroup namespace of the collector's container, paths lack the cgroups that contain the collector, too. "+
			"In system.slice it sees /system.slice/nginx.service as /../nginx.service. "+
			"Name only the last cgroup, as in **/nginx.service, select by container_id, uid or executable, or give the collector the host's cgroup namespace.",
			(*targets.Selector).NamesAncestors)
	}
	if fs.Cgroup1() {
		warn("Selectors by cgroup see cgroup v2 alone, and this host has v1, or both: processes have no group of v2 there, or containers that of the service that runs them. "+
			"Select by container_id, uid or executable.",
			func(s *targets.Selector) bool { return s.Cgroup != "" || s.CgroupID != 0 })
	}
}

// newSelection tells the process table which processes are wanted; nil: all.
func newSelection(o *TargetOptions, matches *selectorMatches) (*process.Selection, error) {
	if !o.selects() {
		return nil, nil
	}
	wanted := o.Selection
	s := &process.Selection{LabelledOnly: o.LabelledOnly, ByPID: wanted.ByPID()}
	if wanted.ByCgroupID() {
		var err error
		if s.Cgroups, err = procfs.FindCgroupFS(); err != nil {
			return nil, fmt.Errorf("targets by cgroup_id: %w", err)
		}
	}
	s.Wants = func(info *process.Info) bool {
		p := &targets.Process{
			PID: info.PID, UID: info.UID, Executable: info.Path, Cgroup: info.Cgroup, CgroupID: info.CgroupID,
			ContainerID: info.ContainerID, Kernel: info.KernelThread,
		}
		matches.note(p)
		return wanted.Wants(p)
	}
	return s, nil
}

// targetFilter says whether the samples of a process are left out, and why.
type targetFilter struct {
	selects bool // a verdict is given at all
}

func newTargetFilter(o *TargetOptions) targetFilter { return targetFilter{selects: o.selects()} }

// verdictWait is how long a batch waits at most for verdicts on its processes, and
// verdictShare the share of the report interval that it waits at most.
const (
	verdictShare = 4
	verdictWait  = 500 * time.Millisecond
)

// await gives the processes of a batch on which there is no verdict time to be judged.
func (o *output) await(b *batch) {
	if !o.targetFilter.selects {
		return
	}
	var unknown []*process.Process
	for _, p := range b.users {
		for _, proc := range p.processes {
			if proc.Info().Verdict == process.VerdictUnknown {
				unknown = append(unknown, proc)
			}
		}
	}
	if len(unknown) > 0 {
		o.table.AwaitVerdicts(o.ctx, unknown, min(verdictWait, o.interval/verdictShare))
	}
}

// of is asked when a batch is built: then mostly there is a verdict. Without one, a process
// may be one that is not wanted, and is left out.
func (o targetFilter) of(info *process.Info) (why FilterReason, omitted bool) {
	if !o.selects {
		return 0, false
	}
	switch info.Verdict {
	case process.VerdictWanted:
		return 0, false
	case process.VerdictFiltered:
		return FilterTarget, true
	}
	return FilterUnknownProcess, true
}
