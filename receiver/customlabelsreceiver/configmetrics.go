package customlabelsreceiver

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/customlabels/otelcol-customlabels/internal/cputime"
)

// Bounds of metrics::label_keys.
const (
	maxMetricLabelKeys     = 16
	maxMetricLabelKeyBytes = 256
)

func (c *Metrics) validate(labels bool) error {
	errs := []error{
		within("metrics::interval", c.Interval, minMetricInterval, maxMetricInterval),
		atMost("metrics::label_keys", len(c.LabelKeys), maxMetricLabelKeys, "keys"),
	}
	if len(c.LabelKeys) > 0 && !labels {
		errs = append(errs, errors.New("metrics::label_keys must be empty with labels::enabled: false: no labels are read, so none would be in the metrics"))
	}
	seen := map[string]bool{}
	for _, key := range c.LabelKeys {
		switch {
		case key == "" || len(key) > maxMetricLabelKeyBytes || !utf8.ValidString(key):
			errs = append(errs, fmt.Errorf("metrics::label_keys: a key must be valid UTF-8 of 1 to %d bytes, not %q", maxMetricLabelKeyBytes, key))
		case strings.HasPrefix(key, cputime.ReservedPrefix):
			errs = append(errs, fmt.Errorf("metrics::label_keys: %q must not begin with %q, as the receiver's own attributes do", key, cputime.ReservedPrefix))
		case seen[key]:
			errs = append(errs, fmt.Errorf("metrics::label_keys: %q is there twice", key))
		}
		seen[key] = true
	}
	return errors.Join(errs...)
}
