package customlabelsreceiver

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"go.opentelemetry.io/collector/confmap"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Bounds of what is in lists.
const (
	maxRuleNameBytes = 64
	maxIDKeys        = 8
	maxIDKeyBytes    = 256
)

// ruleSources are the names of sources in rules: those of metrics and logs. Labels of thread
// contexts have one source, however these were found.
func ruleSources() map[string]record.ABI {
	sources := map[string]record.ABI{"": record.ABINone}
	for _, abi := range []record.ABI{record.ABIV0, record.ABIV1, record.ABIThreadContext, record.ABIGo} {
		sources[abi.String()] = abi
	}
	return sources
}

// Unmarshal implements confmap.Unmarshaler. It refuses a condition that is there without a value, such as one of an
// environment variable that is not set: it would be as none, and so match all labels, or those of root.
func (r *LabelRule) Unmarshal(conf *confmap.Conf) error {
	for key, value := range conf.ToStringMap() {
		isCondition := slices.Contains([]string{"key", "source", "executable", "uid"}, key)
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		if isCondition && (len(list) == 0 || slices.Contains(list, nil) || slices.Contains(list, any(""))) {
			return fmt.Errorf("%s must have a value, without which it would match others, or not be there", key)
		}
	}
	return conf.Unmarshal(r)
}

// rule checks a rule and translates it.
func (r *LabelRule) rule() (labels.Rule, error) {
	var errs []error
	source, ok := ruleSources()[r.Source]
	if !ok {
		errs = append(errs, fmt.Errorf("source must be custom_labels_v0, custom_labels_v1, thread_context or go_labels, not %q", r.Source))
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
	if ok {
		errs = append(errs, out.Validate())
	}
	return out, errors.Join(errs...)
}

// rules translates all rules, which validate has checked.
func (c *Labels) rules() []labels.Rule {
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
func (c *Labels) ruleNames() []string {
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

func (c *Labels) validateRules() error {
	var errs []error
	errs = append(errs, atMost("labels::rules", len(c.Rules), labels.MaxRules, "rules"))
	if !c.Enabled && len(c.Rules) > 0 {
		errs = append(errs, errors.New("labels::rules must be empty with labels::enabled: false: no labels are read"))
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
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return validateOrder(c.rules())
}

// validateOrder refuses rules that never apply: what one of them is to hide would be sent.
func validateOrder(rules []labels.Rule) error {
	var errs []error
	for i := range rules {
		before := slices.IndexFunc(rules[:i], func(b labels.Rule) bool { return b.Covers(&rules[i]) })
		if before >= 0 {
			errs = append(errs, fmt.Errorf("labels::rules::%d would never apply: of each label only the first rule that applies is used, "+
				"and labels::rules::%d applies to all that it is for", i, before))
		}
	}
	return errors.Join(errs...)
}

func (c *Labels) validateIDKeys() error {
	trace, span := c.TraceIDKeys, c.SpanIDKeys
	var errs []error
	if !c.Enabled && len(trace)+len(span) > 0 {
		errs = append(errs, errors.New("labels::trace_id_keys and labels::span_id_keys must be empty with labels::enabled: false: no labels are read"))
	}
	if (len(trace) == 0) != (len(span) == 0) {
		errs = append(errs, errors.New("labels::trace_id_keys and labels::span_id_keys must be set together: a link has both ids"))
	}
	for _, list := range []struct {
		name string
		keys []IDKey
	}{{"labels::trace_id_keys", trace}, {"labels::span_id_keys", span}} {
		errs = append(errs, atMost(list.name, len(list.keys), maxIDKeys, "keys"))
		for _, k := range list.keys {
			if k.Key == "" || len(k.Key) > maxIDKeyBytes {
				errs = append(errs, fmt.Errorf("%s: key must have 1 to %d bytes, not %d", list.name, maxIDKeyBytes, len(k.Key)))
			}
			if k.Format != "" && k.Format != IDHex && k.Format != IDDecimal {
				errs = append(errs, fmt.Errorf("%s: format must be %q or %q, not %q", list.name, IDHex, IDDecimal, k.Format))
			}
		}
	}
	for _, k := range trace {
		if slices.ContainsFunc(span, func(other IDKey) bool { return other.Key == k.Key }) {
			errs = append(errs, fmt.Errorf("labels::trace_id_keys and labels::span_id_keys: one label, %q, has not both ids", k.Key))
		}
	}
	return errors.Join(errs...)
}
