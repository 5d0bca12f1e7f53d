//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// truncatedKey marks samples of whose labels anything was cut.
const truncatedKey = "custom_labels.truncated"

// An expectation is what every sample of a hostile writer carries.
type expectation struct {
	outcome   record.Outcome
	labels    map[string]string
	cutLabels map[string]string // by key: a prefix of the value; what follows is the program's memory
	cutKeys   []string          // a prefix of a key whose end is likewise unknown
	link      bool
}

// hostileLink is what the records of testdata/writers/hostile_ctx.c have.
var hostileLink = link{
	traceID: [16]byte([]byte(strings.Repeat("\x71", 16))),
	spanID:  [8]byte([]byte(strings.Repeat("\x72", 8))),
}

// good is what stands beside the one bad label, and what there is besides.
func good(keysAndValues ...string) map[string]string {
	m := map[string]string{"good": "yes", "also_good": "yes"}
	for i := 0; i < len(keysAndValues); i += 2 {
		m[keysAndValues[i]] = keysAndValues[i+1]
	}
	return m
}

func nothing(o record.Outcome) expectation { return expectation{outcome: o} }

func present(m map[string]string) expectation {
	return expectation{outcome: record.OutcomePresent, labels: m}
}

func truncated(m map[string]string) expectation {
	return expectation{outcome: record.OutcomeTruncated, labels: m}
}

// hostileLabels are the kinds of v0 and v1.
func hostileLabels() map[string]expectation {
	fault := nothing(record.OutcomeFault)
	first64 := map[string]string{}
	for i := range 64 {
		first64[fmt.Sprintf("k%d", i)] = "v"
	}
	return map[string]expectation{
		"many-slots":              truncated(nil),
		"many-labels":             truncated(first64),
		"storage-null":            nothing(record.OutcomeInvalid),
		"storage-unmapped":        fault,
		"storage-kernel":          fault,
		"storage-non-canonical":   fault,
		"storage-misaligned":      present(map[string]string{"odd": "yes"}),
		"storage-page-end":        fault,
		"storage-garbage-count-0": nothing(record.OutcomeNone),
		"set-unmapped":            fault,
		"set-kernel":              fault,
		"set-non-canonical":       fault,
		"set-page-end":            fault,
		"set-small-number":        fault,
		"key-64k":                 truncated(good(strings.Repeat("k", 256), "value")),
		"key-unmapped":            fault,
		"key-kernel":              fault,
		"key-empty":               present(good("", "value")),
		"value-64k":               truncated(good("long", strings.Repeat("v", 1024))),
		"value-unmapped":          fault,
		"value-kernel":            fault,
		"value-page-end":          fault,
		"value-null":              present(good()),
		"value-null-length":       present(good()),
		"value-empty":             present(good("key", "")),
		"hole":                    present(good()),
		"not-utf8":                present(good(`k\xff\xfe`, "v\xc3\x28\x80")),
		"nul-bytes":               present(good("k\x00k", "v\x00v")),
		"control-bytes":           present(good("key", "\x1b[31mred\r\n\x07")),
		"duplicate-key":           present(good()),

		// Lengths beyond what is there, in memory that is there: the beginning is right.
		"key-huge":   {outcome: record.OutcomeTruncated, labels: good(), cutKeys: []string{"key"}},
		"value-huge": {outcome: record.OutcomeTruncated, labels: good(), cutLabels: map[string]string{"key": "value"}},
		"count-huge": {outcome: record.OutcomeTruncated, labels: map[string]string{"good": "yes"}},
	}
}

// hostileContexts are the kinds of the thread context. Its attributes have no names.
func hostileContexts() map[string]expectation {
	fault, invalid := nothing(record.OutcomeFault), nothing(record.OutcomeInvalid)
	linked := expectation{outcome: record.OutcomePresent, link: true}
	return map[string]expectation{
		"valid-0":              nothing(record.OutcomeUpdating),
		"valid-2":              invalid,
		"valid-212":            invalid,
		"size-65535":           {outcome: record.OutcomeTruncated, link: true},
		"size-65535-page-end":  fault,
		"size-exact-page-end":  linked,
		"record-page-end":      fault,
		"record-unmapped":      fault,
		"record-kernel":        fault,
		"record-non-canonical": fault,
		"record-small-number":  fault,
		"record-misaligned":    linked,
		"trace-id-only":        nothing(record.OutcomePresent),
		"span-id-only":         nothing(record.OutcomePresent),
		"no-ids":               nothing(record.OutcomePresent),
		"entry-cut":            linked,
		"entry-half":           linked,
		"duplicate-index":      linked,
		"empty-value":          linked,
		"unknown-index":        linked,
		"not-utf8":             linked,
	}
}

// bare reports whether nothing is to be seen.
func (e *expectation) bare() bool {
	return !e.link && e.outcome != record.OutcomeTruncated && len(e.labels)+len(e.cutLabels)+len(e.cutKeys) == 0
}

// judge says what is wrong with a hit; nil: nothing.
func (e *expectation) judge(h *hit) error {
	if want := e.link; want != (h.link == hostileLink) || !want && h.link != (link{}) {
		return fmt.Errorf("link %x, expected one: %v", h.link, want)
	}
	if got, want := h.attrs[truncatedKey] == "true", e.outcome == record.OutcomeTruncated; got != want {
		return fmt.Errorf("marked as truncated: %v, want %v", got, want)
	}
	left := map[string]string{}
	for key, value := range h.attrs {
		if label, ok := strings.CutPrefix(key, prefix); ok {
			left[label] = value
		}
	}
	found := maps.Clone(left)
	for key, value := range e.labels {
		if got, ok := left[key]; !ok || got != value {
			return fmt.Errorf("label %q is %q (there: %v), want %q, among %q", key, got, ok, value, found)
		}
		delete(left, key)
	}
	for key, start := range e.cutLabels {
		if !strings.HasPrefix(left[key], start) {
			return fmt.Errorf("label %q is %q, does not begin with %q", key, left[key], start)
		}
		delete(left, key)
	}
	for _, start := range e.cutKeys {
		for key := range left {
			if strings.HasPrefix(key, start) {
				delete(left, key)
				break
			}
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("labels that nobody published: %q", left)
	}
	if want := len(e.labels) + len(e.cutLabels) + len(e.cutKeys); len(found) != want {
		return fmt.Errorf("%d labels, want %d: %q", len(found), want, found)
	}
	return nil
}
