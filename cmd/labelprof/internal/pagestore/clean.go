// SPDX-License-Identifier: Apache-2.0

package pagestore

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// cleaner makes samples for the store, of one batch: with texts in UTF-8, and labels under
// the keys that programs gave them.
type cleaner struct {
	locations map[*sample.Location]*sample.Location
	made      samplestore.Sample
	keys      map[string]bool // of its labels
}

func newCleaner() *cleaner {
	return &cleaner{locations: map[*sample.Location]*sample.Location{}, keys: map[string]bool{}}
}

// stored returns the sample, valid until the next call.
func (c *cleaner) stored(s *sample.Sample) *samplestore.Sample {
	c.made.Kind, c.made.Points = s.Kind, s.Points
	c.made.Stack = c.made.Stack[:0]
	for _, l := range s.Stack {
		c.made.Stack = append(c.made.Stack, c.location(l))
	}
	c.made.Labels = c.made.Labels[:0]
	clear(c.keys)
	c.labels(s)
	return &c.made
}

// labels puts what is sure before what programs say of themselves: of two with one key the
// first stays under it.
func (c *cleaner) labels(s *sample.Sample) {
	for _, a := range s.Process.Attributes {
		if sample.OfKernel(a.Key) {
			c.put(a, a.Key)
		}
	}
	if s.TraceID != "" {
		c.put(sample.Attribute{Text: s.TraceID}, sample.KeyTraceID)
	}
	if s.SpanID != "" {
		c.put(sample.Attribute{Text: s.SpanID}, sample.KeySpanID)
	}
	for _, a := range s.Attributes {
		if !strings.HasPrefix(a.Key, sample.LabelPrefix) {
			c.put(a, a.Key)
		}
	}
	for _, a := range s.Attributes {
		if name, ok := strings.CutPrefix(a.Key, sample.LabelPrefix); ok {
			c.put(a, name, a.Key)
		}
	}
	for _, a := range s.Process.Attributes {
		c.put(a, a.Key)
	}
}

// put adds a label under the first of the keys that is free.
func (c *cleaner) put(a sample.Attribute, keys ...string) {
	if len(c.made.Labels) > samplestore.MaxLabels {
		return // one more than the store takes, so that it is counted there
	}
	for _, key := range keys {
		key = terminal.ValidUTF8(key)
		if key != "" && !c.keys[key] {
			c.keys[key] = true
			c.made.Labels = append(c.made.Labels, samplestore.Label{Key: key, Value: terminal.ValidUTF8(a.Text), Number: a.IsNumber})
			return
		}
	}
}

// location returns the location itself if all of its texts are UTF-8.
func (c *cleaner) location(l *sample.Location) *sample.Location {
	known, ok := c.locations[l]
	if !ok {
		known = cleanLocation(l)
		c.locations[l] = known
	}
	return known
}

func cleanLocation(l *sample.Location) *sample.Location {
	texts := []string{l.Type, l.Mapping.File, l.Mapping.BuildID}
	for _, entry := range l.Lines {
		texts = append(texts, entry.Function.Name, entry.Function.File)
	}
	if !slices.ContainsFunc(texts, func(s string) bool { return !utf8.ValidString(s) }) {
		return l
	}
	made := *l
	made.Type, made.Mapping.File, made.Mapping.BuildID = terminal.ValidUTF8(l.Type), terminal.ValidUTF8(l.Mapping.File), terminal.ValidUTF8(l.Mapping.BuildID)
	made.Lines = slices.Clone(l.Lines)
	for i := range made.Lines {
		f := &made.Lines[i].Function
		f.Name, f.File = terminal.ValidUTF8(f.Name), terminal.ValidUTF8(f.File)
	}
	return &made
}
