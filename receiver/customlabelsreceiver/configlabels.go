package customlabelsreceiver

import (
	"errors"
	"fmt"
	"math"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

// maxHashSaltBytes of labels::hash_salt; maxRuleNameBytes of the name of a rule.
const (
	maxHashSaltBytes = 256
	maxRuleNameBytes = 64
)

// TypeConflicts says what becomes of values of one key that are not of one type.
type TypeConflicts string

// What becomes of them.
const (
	TypeConflictsStringify TypeConflicts = "stringify" // from the first on, the key's values are text, bytes escaped
	TypeConflictsRefuse    TypeConflicts = "refuse"    // labels of another type than the first are left out
)

// LabelBudgets bound what the labels of each user may take.
type LabelBudgets struct {
	// Users with budgets of their own; those that come later share one user's.
	Users int `mapstructure:"users"`
	// Keys that are different, as long as the receiver runs.
	Keys int `mapstructure:"keys"`
	// Values of all keys that are different, in a report interval.
	Values int `mapstructure:"values"`
	// Sets that are different, in a report interval.
	Sets int `mapstructure:"sets"`
	// Bytes of memory of the label sets of a report interval, and as many of remembered reads.
	Bytes int `mapstructure:"bytes"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func (b *LabelBudgets) budgets() labels.Budgets {
	return labels.Budgets{Users: b.Users, Keys: b.Keys, Values: b.Values, Sets: b.Sets, Bytes: b.Bytes}
}

func defaultLabelBudgets() LabelBudgets {
	b := labels.DefaultBudgets()
	return LabelBudgets{Users: b.Users, Keys: b.Keys, Values: b.Values, Sets: b.Sets, Bytes: b.Bytes}
}

// LabelRule changes or drops the labels that all of its conditions hold for. Of each
// label the first rule in order is used, and no other.
type LabelRule struct {
	// Name of the rule in metrics; by default its number, from 0.
	Name string `mapstructure:"name"`
	// Key is a pattern: * any run of characters, ? one character. Empty: any key.
	Key string `mapstructure:"key"`
	// Source is v0, v1, thread_context or go. Empty: any.
	Source string `mapstructure:"source"`
	// Executable is a glob for the path of the executable, as the process's mount namespace shows it. Empty: any.
	Executable string `mapstructure:"executable"`
	// UID has users, as in the init user namespace. Empty: any.
	UID []int64 `mapstructure:"uid"`
	// Action is keep, drop, rename, hash, cap_value_bytes or cap_distinct_values.
	Action string `mapstructure:"action"`
	// To is the new key of the action rename.
	To string `mapstructure:"to"`
	// Limit of the actions cap_value_bytes and cap_distinct_values.
	Limit int `mapstructure:"limit"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// ruleSources are the names of sources in rules.
func ruleSources() map[string]labels.ABI {
	return map[string]labels.ABI{
		"": labels.ABINone, "v0": labels.ABIV0, "v1": labels.ABIV1,
		"thread_context": labels.ABIThreadContext, "go": labels.ABIGo,
	}
}

// rule checks a rule and translates it.
func (r *LabelRule) rule() (labels.Rule, error) {
	var errs []error
	source, ok := ruleSources()[r.Source]
	if !ok {
		errs = append(errs, fmt.Errorf("source must be v0, v1, thread_context or go, not %q", r.Source))
	}
	action, ok := labels.ParseAction(r.Action)
	if !ok {
		errs = append(errs, fmt.Errorf("action must be keep, drop, rename, hash, cap_value_bytes or cap_distinct_values, not %q", r.Action))
	}
	if len(r.Name) > maxRuleNameBytes {
		errs = append(errs, fmt.Errorf("name must have at most %d bytes, not %d", maxRuleNameBytes, len(r.Name)))
	}
	out := labels.Rule{Key: r.Key, Source: source, Executable: r.Executable, Action: action, To: r.To, Limit: r.Limit}
	for _, uid := range r.UID {
		errs = append(errs, within("uid", uid, 0, math.MaxUint32))
		out.UIDs = append(out.UIDs, uint32(uid))
	}
	if r.Executable != "" {
		selector := targets.Selector{Executable: r.Executable} // the same globs
		errs = append(errs, selector.Validate())
	}
	if errors.Join(errs...) == nil {
		errs = append(errs, out.Validate())
	}
	return out, errors.Join(errs...)
}

// rules translates all rules, which validate has checked.
func (c *LabelsConfig) rules() []labels.Rule {
	var out []labels.Rule
	for i := range c.Rules {
		r, err := c.Rules[i].rule()
		if err == nil {
			out = append(out, r)
		}
	}
	return out
}

// ruleNames are those in metrics.
func (c *LabelsConfig) ruleNames() []string {
	var out []string
	for i := range c.Rules {
		name := c.Rules[i].Name
		if name == "" {
			name = fmt.Sprint(i)
		}
		out = append(out, name)
	}
	return out
}

func (c *LabelsConfig) validateRules() error {
	var errs []error
	if len(c.Rules) > labels.MaxRules {
		errs = append(errs, fmt.Errorf("labels::rules must have at most %d rules, not %d", labels.MaxRules, len(c.Rules)))
	}
	seen := map[string]bool{}
	for i, name := range c.ruleNames() {
		if _, err := c.Rules[i].rule(); err != nil {
			errs = append(errs, fmt.Errorf("labels::rules::%d: %w", i, err))
		}
		if seen[name] {
			errs = append(errs, fmt.Errorf("labels::rules::%d: name %q is another rule's, too", i, name))
		}
		seen[name] = true
	}
	if len(c.HashSalt) > maxHashSaltBytes {
		errs = append(errs, fmt.Errorf("labels::hash_salt must have at most %d bytes, not %d", maxHashSaltBytes, len(c.HashSalt)))
	}
	return errors.Join(errs...)
}

func (b *LabelBudgets) validate() error {
	return errors.Join(
		within("labels::budgets::users", b.Users, 1, labels.MaxBudgetUsers),
		within("labels::budgets::keys", b.Keys, 1, labels.MaxBudgetCount),
		within("labels::budgets::values", b.Values, 1, labels.MaxBudgetCount),
		within("labels::budgets::sets", b.Sets, 1, labels.MaxBudgetCount),
		within("labels::budgets::bytes", b.Bytes, labels.MinBudgetBytes, labels.MaxBudgetBytes),
	)
}
