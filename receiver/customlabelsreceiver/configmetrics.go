package customlabelsreceiver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/customlabels/otelcol-customlabels/internal/cputime"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// Bounds of metrics::label_keys.
const (
	maxMetricLabelKeys     = 16
	maxMetricLabelKeyBytes = 256
)

func (c *Metrics) validate(l *Labels) error {
	errs := []error{
		within("metrics::interval", c.Interval, minMetricInterval, maxMetricInterval),
		atMost("metrics::label_keys", len(c.LabelKeys), maxMetricLabelKeys, "keys"),
	}
	if len(c.LabelKeys) > 0 && !l.Enabled {
		errs = append(errs, errors.New("metrics::label_keys must be empty with labels::enabled: false: no labels are read, so none would be in the metrics"))
	}
	seen := map[string]string{}
	for _, own := range []string{cputime.AttrThreadState, cputime.AttrTruncated, cputime.AttrOverflow} {
		seen[inPrometheus(own)] = own
	}
	for _, key := range c.LabelKeys {
		name := inPrometheus(key)
		switch {
		case key == "" || len(key) > maxMetricLabelKeyBytes || !utf8.ValidString(key):
			errs = append(errs, fmt.Errorf("metrics::label_keys: a key must be valid UTF-8 of 1 to %d bytes, not %q", maxMetricLabelKeyBytes, key))
		case strings.HasPrefix(key, cputime.ReservedPrefix):
			errs = append(errs, fmt.Errorf("metrics::label_keys: %q must not begin with %q, as the receiver's own attributes do", key, cputime.ReservedPrefix))
		case seen[name] == key:
			errs = append(errs, fmt.Errorf("metrics::label_keys: %q is there twice", key))
		case seen[name] != "":
			errs = append(errs, fmt.Errorf("metrics::label_keys: %q and %q are one label, %q, in Prometheus", seen[name], key, name))
		case name == "job" || name == "instance":
			errs = append(errs, fmt.Errorf("metrics::label_keys: %q is a label that Prometheus sets itself, by service.name and service.instance.id: "+
				"give it another key with the action rename of labels::rules", key))
		default:
			errs = append(errs, l.validateLeft(key))
		}
		seen[name] = key
	}
	return errors.Join(errs...)
}

// inPrometheus is the name of the label that Prometheus makes of a key.
func inPrometheus(key string) string { return labels.Undotted(labels.PrometheusName(key)) }

// validateLeft refuses a key whose labels are never left for metrics.
func (c *Labels) validateLeft(key string) error {
	if slices.ContainsFunc(slices.Concat(c.TraceIDKeys, c.SpanIDKeys), func(k IDKey) bool { return k.Key == key }) {
		return fmt.Errorf("metrics::label_keys: %q is in labels::trace_id_keys or labels::span_id_keys, which make a link of it and no label", key)
	}
	if !labels.LeaveKey(c.rules(), key) {
		return fmt.Errorf("metrics::label_keys: no label %q is left by labels::rules, which come first: name the key that they give it, or keep it there", key)
	}
	return nil
}
