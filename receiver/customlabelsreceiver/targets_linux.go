//go:build amd64 || arm64

package customlabelsreceiver

import (
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

// newSelection tells the process table which processes are wanted; nil: all.
func newSelection(cfg *TargetsConfig) (*process.Selection, error) {
	if !cfg.selects() {
		return nil, nil
	}
	wanted := cfg.selection()
	s := &process.Selection{LabelledOnly: cfg.LabelledOnly, ByPID: wanted.ByPID()}
	if wanted.ByCgroupID() {
		var err error
		if s.Cgroups, err = procfs.FindCgroupFS(); err != nil {
			return nil, fmt.Errorf("targets by cgroup_id: %w", err)
		}
	}
	s.Wants = func(info *process.Info) bool {
		return wanted.Wants(&targets.Process{
			PID: info.PID, UID: info.UID, Executable: info.Path, Cgroup: info.Cgroup, CgroupID: info.CgroupID,
			ContainerID: info.ContainerID, Kernel: info.KernelThread,
		})
	}
	return s, nil
}

// omission says whether the samples of a process are left out, and why.
type omission struct {
	selects bool // a verdict is given at all
	strict  bool // without one, they are left out
}

func newOmission(cfg *TargetsConfig) omission {
	return omission{selects: cfg.selects(), strict: len(cfg.Include) > 0 || cfg.LabelledOnly}
}

// of is asked when a batch is built: then mostly there is a verdict.
func (o omission) of(info *process.Info) (why filterReason, omitted bool) {
	if !o.selects {
		return 0, false
	}
	switch info.Verdict {
	case process.VerdictWanted:
		return 0, false
	case process.VerdictFiltered:
		return filterTarget, true
	}
	return filterUnknownProcess, o.strict
}
