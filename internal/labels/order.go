package labels

import (
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Covers reports whether r, where it comes first, leaves no label to another rule: both have the same conditions, or r has
// fewer. That patterns of keys, or globs, match all that others do is not looked for.
func (r *Rule) Covers(other *Rule) bool {
	key := r.keyPattern()
	return (key == "*" || key == other.keyPattern()) &&
		(r.Source == record.ABINone || r.Source == other.Source) &&
		(r.Executable == "" || r.Executable == other.Executable) &&
		(len(r.UIDs) == 0 || len(other.UIDs) > 0 && !slices.ContainsFunc(other.UIDs, func(uid uint32) bool { return !slices.Contains(r.UIDs, uid) }))
}

// keyPattern is what keys are compared with.
func (r *Rule) keyPattern() string {
	p, err := newPattern(r.Key)
	switch {
	case err != nil:
		return r.Key
	case p.text == "":
		return "*"
	}
	return p.text
}

// LeaveKey reports whether there can be labels of a key after rules were applied to them.
func LeaveKey(rules []Rule, key string) bool {
	if slices.ContainsFunc(rules, func(r Rule) bool { return r.Action == Rename && r.To == key }) {
		return true
	}
	for i := range rules {
		r := &rules[i]
		p, err := newPattern(r.keyPattern())
		if err != nil || !p.matches([]byte(key)) {
			continue
		}
		if r.Action != Drop && r.Action != Rename {
			return true
		}
		if r.Source == record.ABINone && r.Executable == "" && len(r.UIDs) == 0 {
			return false
		}
	}
	return true
}
