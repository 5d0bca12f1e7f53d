package labels

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

// Action is what a Rule does to a label.
type Action uint8

// The actions.
const (
	Keep              Action = iota // nothing: no later rule does either
	Drop                            // the label is left out
	Rename                          // the label gets another key
	Hash                            // the value becomes a keyed hash of itself
	CapValueBytes                   // the value is cut
	CapDistinctValues               // of the key, only so many different values in an interval

	NumActions = iota
)

var actionNames = [NumActions]string{"keep", "drop", "rename", "hash", "cap_value_bytes", "cap_distinct_values"}

// String returns the name used in the configuration and in metrics.
func (a Action) String() string {
	if a >= NumActions {
		return "unknown"
	}
	return actionNames[a]
}

// ParseAction returns the action of a name.
func ParseAction(name string) (Action, bool) {
	i := slices.Index(actionNames[:], name)
	return Action(max(i, 0)), i >= 0
}

// Limits of rules.
const (
	MaxRules           = 64
	MaxRenamedBytes    = 256 // of a new key
	MaxValueBytesLimit = 1024
	MaxDistinctLimit   = 100_000
)

// A Rule applies to the labels that all of its conditions hold for. An empty condition
// always holds.
type Rule struct {
	Key        string     // pattern: * any run of characters, ? one
	Source     record.ABI // ABIThreadContext is all thread contexts'
	Executable string     // glob of the path that the process's mount namespace shows, as doublestar has them
	UIDs       []uint32

	Action Action
	To     string // of Rename
	Limit  int    // of CapValueBytes (bytes) and CapDistinctValues
}

// Validate names what is wrong with a rule.
func (r *Rule) Validate() error {
	_, err := newPattern(r.Key)
	errs := []error{err}
	if glob, found := fromExpression(r.Key); found {
		errs = append(errs, fmt.Errorf("key %q looks like a regular expression and would match nothing: "+
			"* stands for any characters and ? for one, as in %q", r.Key, glob))
	}
	if r.Executable != "" {
		if err := targets.ValidatePath(r.Executable); err != nil {
			errs = append(errs, fmt.Errorf("executable %w", err))
		}
	}
	limit := 0
	switch r.Action {
	case Rename:
		if r.To == "" || len(r.To) > MaxRenamedBytes || !utf8.ValidString(r.To) {
			errs = append(errs, fmt.Errorf("to must be valid UTF-8 of 1 to %d bytes, not %q", MaxRenamedBytes, r.To))
		}
	case CapValueBytes:
		limit = MaxValueBytesLimit
	case CapDistinctValues:
		limit = MaxDistinctLimit
	}
	switch {
	case r.Action >= NumActions:
		errs = append(errs, errors.New("action is not known"))
	case r.Action != Rename && r.To != "":
		errs = append(errs, fmt.Errorf("to is for the action rename, not for %v", r.Action))
	case limit == 0 && r.Limit != 0:
		errs = append(errs, fmt.Errorf("limit is for the actions cap_value_bytes and cap_distinct_values, not for %v", r.Action))
	case limit != 0 && (r.Limit < 1 || r.Limit > limit):
		errs = append(errs, fmt.Errorf("limit must be between 1 and %d, not %d", limit, r.Limit))
	}
	return errors.Join(errs...)
}

var class = regexp.MustCompile(`\[[^]]*\]`)

// fromExpression returns a pattern for what looks like a regular expression. A key that
// really has a character of one is matched by ? in its place.
func fromExpression(key string) (glob string, found bool) {
	if !strings.HasPrefix(key, "^") && !strings.HasSuffix(key, "$") && !strings.Contains(key, ".+") && !strings.ContainsAny(key, `\()[]|`) {
		return "", false
	}
	same := strings.NewReplacer("^", "", "$", "", ".*", "*", ".+", "?*", `\.`, ".", `\`, "", "(", "", ")", "", "[", "?", "]", "?", "|", "?")
	return same.Replace(class.ReplaceAllString(key, "?")), true
}

// compiled is a Rule ready for use.
type compiled struct {
	*Rule
	number  int // among all rules
	pattern pattern
	to      []byte
}

func compile(rules []Rule) ([]compiled, error) {
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("at most %d rules, not %d", MaxRules, len(rules))
	}
	var out []compiled
	for i := range rules {
		r := &rules[i]
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i, err)
		}
		p, err := newPattern(r.keyPattern())
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i, err)
		}
		out = append(out, compiled{Rule: r, number: i, pattern: p, to: []byte(r.To)})
	}
	return out, nil
}

// concerns reports whether the rule is for processes of a user and an executable. One
// that is not known is taken for one that has something to hide.
func (r *compiled) concerns(uid uint32, executable string) bool {
	if len(r.UIDs) > 0 && !slices.Contains(r.UIDs, uid) {
		return false
	}
	if r.Executable == "" || executable == "" {
		return r.Executable == "" || r.Action == Drop || r.Action == Hash
	}
	return doublestar.MatchUnvalidated(r.Executable, executable)
}

// applies reports whether the rule is for labels of a key and a source.
func (r *compiled) applies(key []byte, source record.ABI) bool {
	return (r.Source == record.ABINone || r.Source == source) && r.pattern.matches(key)
}
