package customlabelsreceiver

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"go.opentelemetry.io/collector/confmap"

	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

// Unmarshal implements confmap.Unmarshaler. It refuses a field that is there without a value, such as one of an
// environment variable that is not set: it would be as none, and so match all processes. User 0 is a value.
func (s *TargetSelector) Unmarshal(conf *confmap.Conf) error {
	for key, value := range conf.ToStringMap() {
		if value == nil || value == "" || key != "uid" && reflect.ValueOf(value).IsZero() {
			return fmt.Errorf("%s must have a value, without which it would match all processes, or not be there", key)
		}
	}
	return conf.Unmarshal(s)
}

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
