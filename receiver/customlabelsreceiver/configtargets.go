package customlabelsreceiver

import (
	"errors"
	"fmt"
	"math"

	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

// TargetsConfig says which processes are sampled.
type TargetsConfig struct {
	// Include samples only the processes that one of these matches; empty: all.
	Include []TargetSelector `mapstructure:"include"`
	// Exclude does not sample the processes that one of these matches, though they are included.
	Exclude []TargetSelector `mapstructure:"exclude"`
	// LabelledOnly samples only processes in which a label source was found.
	LabelledOnly bool `mapstructure:"labelled_only"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// TargetSelector matches a process if all of its fields that are set do.
type TargetSelector struct {
	// Executable is a glob for the path of the executable, as the process's mount namespace shows it.
	Executable string `mapstructure:"executable"`
	// Cgroup is a glob for the path in cgroup v2, as the collector's cgroup namespace sees it.
	Cgroup string `mapstructure:"cgroup"`
	// CgroupID is the id of a cgroup v2, the inode of its directory.
	CgroupID uint64 `mapstructure:"cgroup_id"`
	// ContainerID is a glob for the id of the container.
	ContainerID string `mapstructure:"container_id"`
	// UID is the real user id, as the collector's user namespace sees it.
	UID *int64 `mapstructure:"uid"`
	// PID is as the collector's PID namespace sees it.
	PID int `mapstructure:"pid"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func (c *TargetsConfig) selection() targets.Selection {
	list := func(selectors []TargetSelector) (out []targets.Selector) {
		for i := range selectors {
			out = append(out, selectors[i].selector())
		}
		return out
	}
	return targets.Selection{Include: list(c.Include), Exclude: list(c.Exclude)}
}

func (s *TargetSelector) selector() targets.Selector {
	out := targets.Selector{
		Executable: s.Executable, Cgroup: s.Cgroup, CgroupID: s.CgroupID, ContainerID: s.ContainerID, PID: s.PID,
	}
	if s.UID != nil {
		uid := uint32(*s.UID) // validate has seen that it is one
		out.UID = &uid
	}
	return out
}

func (c *TargetsConfig) validate() error {
	var errs []error
	for _, list := range []struct {
		name      string
		selectors []TargetSelector
	}{{"targets::include", c.Include}, {"targets::exclude", c.Exclude}} {
		if len(list.selectors) > targets.MaxSelectors {
			errs = append(errs, fmt.Errorf("%s must have at most %d selectors, not %d", list.name, targets.MaxSelectors, len(list.selectors)))
		}
		for i := range list.selectors {
			if uid := list.selectors[i].UID; uid != nil {
				errs = append(errs, within(fmt.Sprintf("%s::%d: uid", list.name, i), *uid, 0, math.MaxUint32))
			}
			s := list.selectors[i].selector()
			if err := s.Validate(); err != nil {
				errs = append(errs, fmt.Errorf("%s::%d: %w", list.name, i, err))
			}
		}
	}
	return errors.Join(errs...)
}
