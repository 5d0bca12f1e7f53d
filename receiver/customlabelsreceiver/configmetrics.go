package customlabelsreceiver

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/customlabels/otelcol-customlabels/internal/cputime"
)

// Bounds of MetricsConfig.
const (
	maxMetricLabelKeys = 16
	minMetricInterval  = time.Second
	maxMetricInterval  = 10 * time.Minute
	maxMetricSeries    = 1 << 20
	minMetricExpiry    = time.Second
	maxMetricExpiry    = 24 * time.Hour
)

// MetricsConfig says what the metrics have; it matters only where the receiver is in a
// pipeline of metrics.
type MetricsConfig struct {
	// LabelKeys that CPU time is told apart by, besides the process.
	LabelKeys []string `mapstructure:"label_keys"`
	// Interval is how often all sums are handed to the next consumer.
	Interval time.Duration `mapstructure:"interval"`
	// MaxUserSeries that have labels of their own, of each user. From twice as many on new
	// processes share one.
	MaxUserSeries int `mapstructure:"max_user_series"`
	// Expiry is how long the series of a process that has ended are still emitted.
	Expiry time.Duration `mapstructure:"expiry"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func defaultMetrics() MetricsConfig {
	return MetricsConfig{Interval: 15 * time.Second, MaxUserSeries: 2048, Expiry: 5 * time.Minute}
}

func (c *MetricsConfig) validate() error {
	errs := []error{
		within("metrics::max_user_series", c.MaxUserSeries, 1, maxMetricSeries),
		within("metrics::interval", c.Interval, minMetricInterval, maxMetricInterval),
		within("metrics::expiry", c.Expiry, minMetricExpiry, maxMetricExpiry),
	}
	if len(c.LabelKeys) > maxMetricLabelKeys {
		errs = append(errs, fmt.Errorf("metrics::label_keys must have at most %d keys, not %d", maxMetricLabelKeys, len(c.LabelKeys)))
	}
	seen := map[string]bool{}
	for _, key := range c.LabelKeys {
		switch {
		case key == "" || len(key) > maxLabelKeyBytes || !utf8.ValidString(key):
			errs = append(errs, fmt.Errorf("metrics::label_keys: a key must be valid UTF-8 of 1 to %d bytes, not %q", maxLabelKeyBytes, key))
		case strings.HasPrefix(key, cputime.ReservedPrefix):
			errs = append(errs, fmt.Errorf("metrics::label_keys: %q must not begin with %q, as the receiver's own attributes do", key, cputime.ReservedPrefix))
		case seen[key]:
			errs = append(errs, fmt.Errorf("metrics::label_keys: %q is there twice", key))
		}
		seen[key] = true
	}
	return errors.Join(errs...)
}
