package customlabelsreceiver

import (
	"errors"
	"fmt"
	"math"

	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

func (c *Targets) selection() targets.Selection {
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

func (c *Targets) validate() error {
	var errs []error
	for _, list := range []struct {
		name      string
		selectors []TargetSelector
	}{{"targets::include", c.Include}, {"targets::exclude", c.Exclude}} {
		errs = append(errs, atMost(list.name, len(list.selectors), targets.MaxSelectors, "selectors"))
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
