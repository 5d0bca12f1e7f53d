package targets

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	// MaxSelectors of a list: each look at a process goes through all of them.
	MaxSelectors = 64
	// MaxGlobBytes of a pattern.
	MaxGlobBytes = 1024
)

// A Process is what selectors look at.
type Process struct {
	PID         int    // as the reader's PID namespace sees it
	UID         uint32 // real user id, as the reader's user namespace sees it
	Executable  string // path as the process's mount namespace shows it; "" if not known
	Cgroup      string // path in the cgroup v2 hierarchy; "" if not known
	CgroupID    uint64 // 0 if not known
	ContainerID string // "" if there is none
	Kernel      bool   // a kernel thread: it has neither user nor executable
}

// A Selector matches processes. Empty fields match all; those that are set must all match.
type Selector struct {
	Executable  string // glob
	Cgroup      string // glob
	ContainerID string // glob
	CgroupID    uint64
	PID         int
	UID         *uint32 // nil: any
}

// Validate reports a selector without any field, and globs that are none.
func (s *Selector) Validate() error {
	if *s == (Selector{}) {
		return errors.New("a selector must have at least one of executable, cgroup, cgroup_id, container_id, uid and pid")
	}
	var errs []error
	for _, glob := range []struct {
		name, pattern string
		validate      func(string) error
	}{
		{"executable", s.Executable, ValidatePath}, {"cgroup", s.Cgroup, ValidatePath}, {"container_id", s.ContainerID, validateContainerID},
	} {
		if glob.pattern == "" {
			continue
		}
		if err := glob.validate(glob.pattern); err != nil {
			errs = append(errs, fmt.Errorf("%s %w", glob.name, err))
		}
	}
	if s.PID < 0 {
		errs = append(errs, fmt.Errorf("pid must be positive, not %d", s.PID))
	}
	return errors.Join(errs...)
}

// OfWholeHierarchy reports whether the selector matches nothing where the paths of cgroups
// begin with /.. and have no ids: outside of the reader's cgroup namespace.
func (s *Selector) OfWholeHierarchy() bool {
	if s.CgroupID != 0 {
		return true
	}
	if s.Cgroup == "" {
		return false
	}
	inside, _, _ := strings.Cut(strings.TrimPrefix(s.Cgroup, "{"), "}")
	for path := range strings.SplitSeq(inside, ",") {
		if strings.HasPrefix(path, "**") || strings.HasPrefix(path, "/**") || strings.HasPrefix(path, "/..") {
			return false
		}
	}
	return true
}

// NamesAncestors reports whether the glob names cgroups above that of a service or container,
// wherever it begins. A reader in a cgroup namespace of its own does not see those that contain
// itself, too.
func (s *Selector) NamesAncestors() bool {
	globs := []string{s.Cgroup}
	if inner, several := strings.CutPrefix(s.Cgroup, "{"); several {
		globs = strings.Split(strings.TrimSuffix(inner, "}"), ",")
	}
	return slices.ContainsFunc(globs, namesAncestors)
}

func namesAncestors(glob string) bool {
	path, anywhere := strings.CutPrefix(strings.TrimPrefix(glob, "/"), "**/")
	first, _, below := strings.Cut(path, "/")
	return anywhere && below && slices.ContainsFunc(strings.Split(strings.Trim(first, "{}"), ","), func(name string) bool {
		return !strings.HasSuffix(name, ".service") && !strings.HasSuffix(name, ".scope")
	})
}

// Matches reports whether all fields match. What is not known of a process matches no field.
func (s *Selector) Matches(p *Process) bool {
	return (s.PID == 0 || s.PID == p.PID) &&
		(s.UID == nil || !p.Kernel && *s.UID == p.UID) &&
		(s.CgroupID == 0 || s.CgroupID == p.CgroupID) &&
		matches(s.ContainerID, p.ContainerID) &&
		matches(s.Cgroup, p.Cgroup) &&
		matches(s.Executable, p.Executable)
}

// String says the fields that are set, as in the configuration.
func (s *Selector) String() string {
	var words []string
	add := func(name, value string) { words = append(words, name+": "+value) }
	for _, glob := range []struct{ name, pattern string }{
		{"executable", s.Executable}, {"cgroup", s.Cgroup}, {"container_id", s.ContainerID},
	} {
		if glob.pattern != "" {
			add(glob.name, strconv.Quote(glob.pattern))
		}
	}
	if s.CgroupID != 0 {
		add("cgroup_id", strconv.FormatUint(s.CgroupID, 10))
	}
	if s.PID != 0 {
		add("pid", strconv.Itoa(s.PID))
	}
	if s.UID != nil {
		add("uid", strconv.FormatUint(uint64(*s.UID), 10))
	}
	return strings.Join(words, ", ")
}

func matches(glob, name string) bool {
	return glob == "" || name != "" && doublestar.MatchUnvalidated(glob, name)
}

// A Selection says which processes are wanted. The zero value wants all.
type Selection struct {
	Include []Selector
	Exclude []Selector
}

// Wants reports whether a process is wanted.
func (s *Selection) Wants(p *Process) bool {
	return (len(s.Include) == 0 || anyMatches(s.Include, p)) && !anyMatches(s.Exclude, p)
}

func anyMatches(list []Selector, p *Process) bool {
	for i := range list {
		if list[i].Matches(p) {
			return true
		}
	}
	return false
}

// ByPID reports whether the answer depends on the PID: then it does not hold for a
// forked child, which has everything else from its parent.
func (s *Selection) ByPID() bool { return s.any(func(s *Selector) bool { return s.PID != 0 }) }

// ByCgroupID reports whether the answer depends on Process.CgroupID.
func (s *Selection) ByCgroupID() bool {
	return s.any(func(s *Selector) bool { return s.CgroupID != 0 })
}

func (s *Selection) any(has func(*Selector) bool) bool {
	for _, list := range [...][]Selector{s.Include, s.Exclude} {
		for i := range list {
			if has(&list[i]) {
				return true
			}
		}
	}
	return false
}
