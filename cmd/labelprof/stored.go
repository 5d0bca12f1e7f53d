// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// kernelKeys are resource attributes that no label may pass for: the kernel says them.
func kernelKeys() []string {
	return []string{keyPID, keyProcessName, "process.executable.path", "process.real_user.id", "container.id"}
}

// cleaner makes samples for the store, of one batch: with texts in UTF-8, and labels under
// the keys that programs gave them.
type cleaner struct {
	kernel    []string
	locations map[*location]*location
	sample    samplestore.Sample
}

func newCleaner() *cleaner {
	return &cleaner{kernel: kernelKeys(), locations: map[*location]*location{}}
}

// stored returns the sample, valid until the next call.
func (c *cleaner) stored(s *sample) *samplestore.Sample {
	c.sample.Kind, c.sample.Points = s.kind, s.points
	c.sample.Stack = c.sample.Stack[:0]
	for _, l := range s.stack {
		c.sample.Stack = append(c.sample.Stack, c.location(l))
	}
	c.sample.Labels = c.sample.Labels[:0]
	c.labels(s)
	return &c.sample
}

// labels puts what is sure before what programs say of themselves: of two with one key the
// first stays under it.
func (c *cleaner) labels(s *sample) {
	for _, a := range s.process.attributes {
		if slices.Contains(c.kernel, a.key) {
			c.put(a, a.key)
		}
	}
	if s.traceID != "" {
		c.put(attribute{text: s.traceID}, keyTraceID)
	}
	if s.spanID != "" {
		c.put(attribute{text: s.spanID}, keySpanID)
	}
	for _, a := range s.attributes {
		if !strings.HasPrefix(a.key, labelPrefix) {
			c.put(a, a.key)
		}
	}
	for _, a := range s.attributes {
		if name, ok := strings.CutPrefix(a.key, labelPrefix); ok {
			c.put(a, name, a.key)
		}
	}
	for _, a := range s.process.attributes {
		c.put(a, a.key)
	}
}

// put adds a label under the first of the keys that is free.
func (c *cleaner) put(a attribute, keys ...string) {
	if len(c.sample.Labels) > samplestore.MaxLabels {
		return // one more than the store takes, so that it is counted there
	}
	for _, key := range keys {
		key = validUTF8(key)
		if key != "" && !slices.ContainsFunc(c.sample.Labels, func(l samplestore.Label) bool { return l.Key == key }) {
			c.sample.Labels = append(c.sample.Labels, samplestore.Label{Key: key, Value: validUTF8(a.text), Number: a.isNumber})
			return
		}
	}
}

// exported is a label as an attribute again.
func exported(l samplestore.Label) attribute {
	a := attribute{key: l.Key, text: l.Value}
	if l.Number {
		n, err := strconv.ParseInt(l.Value, 10, 64)
		a.number, a.isNumber = n, err == nil
	}
	return a
}

// location returns the location itself if all of its texts are UTF-8.
func (c *cleaner) location(l *location) *location {
	known, ok := c.locations[l]
	if !ok {
		known = cleanLocation(l)
		c.locations[l] = known
	}
	return known
}

func cleanLocation(l *location) *location {
	texts := []string{l.Type, l.Mapping.File, l.Mapping.BuildID}
	for _, entry := range l.Lines {
		texts = append(texts, entry.Function.Name, entry.Function.File)
	}
	if !slices.ContainsFunc(texts, func(s string) bool { return !utf8.ValidString(s) }) {
		return l
	}
	made := *l
	made.Type, made.Mapping.File, made.Mapping.BuildID = validUTF8(l.Type), validUTF8(l.Mapping.File), validUTF8(l.Mapping.BuildID)
	made.Lines = slices.Clone(l.Lines)
	for i := range made.Lines {
		f := &made.Lines[i].Function
		f.Name, f.File = validUTF8(f.Name), validUTF8(f.File)
	}
	return &made
}
