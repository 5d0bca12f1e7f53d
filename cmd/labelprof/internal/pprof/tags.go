// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// tagsOf returns what becomes tags, sorted by key, keys unique, and how many labels do not:
// those that gave way to another with the same key, and those without a value, which pprof
// cannot have. A number that is 0 becomes a text: package profile keeps none that has no unit.
func (n *names) tagsOf(s *sample.Sample) (tags []sample.Attribute, lost int) {
	taken := map[string]bool{}
	for _, key := range n.taken {
		taken[key] = true
	}
	put := func(a sample.Attribute, keys ...string) {
		for _, key := range keys {
			if key = n.of(key); key != "" && !taken[key] {
				taken[key] = true
				a.Key, a.Text = terminal.ValidUTF8(key), terminal.ValidUTF8(a.Text)
				if a.IsNumber && a.Number == 0 {
					if n.noZeros {
						return
					}
					a.IsNumber, a.Text = false, "0"
				}
				if !a.IsNumber && a.Text == "" {
					break
				}
				tags = append(tags, a)
				return
			}
		}
		lost++
	}
	if s.Process.PID != 0 {
		put(sample.Attribute{Number: s.Process.PID, IsNumber: true}, sample.KeyPID)
	}
	if s.Process.Name != "" {
		put(sample.Attribute{Text: s.Process.Name}, sample.KeyProcessName)
	}
	// What the kernel says goes before labels, and these before what programs say of themselves, as
	// in sample.Lookup.
	resource := func(ofKernel bool) {
		for _, a := range s.Process.Attributes {
			if sample.OfKernel(a.Key) == ofKernel && a.Key != "" && !taken[n.of(a.Key)] {
				put(a, a.Key)
			}
		}
	}
	resource(true)
	if s.TraceID != "" {
		put(sample.Attribute{Text: s.TraceID}, sample.KeyTraceID)
	}
	if s.SpanID != "" {
		put(sample.Attribute{Text: s.SpanID}, sample.KeySpanID)
	}
	// A label with the prefix gives way to what has its key without it, which in a file of pprof
	// is also what the kernel says.
	for _, a := range s.Attributes {
		if a.Key == sample.KeyTraceID && a.Text == s.TraceID || a.Key == sample.KeySpanID && a.Text == s.SpanID {
			continue // from the link already
		}
		if !strings.HasPrefix(a.Key, sample.LabelPrefix) {
			put(a, a.Key)
		}
	}
	for _, a := range s.Attributes {
		if key, ok := strings.CutPrefix(a.Key, sample.LabelPrefix); ok {
			put(a, key, a.Key)
		}
	}
	resource(false)
	slices.SortFunc(tags, func(a, b sample.Attribute) int { return cmp.Compare(a.Key, b.Key) })
	return tags, lost
}

func setTags(entry *profile.Sample, tags []sample.Attribute) {
	for _, tag := range tags {
		if tag.IsNumber {
			if entry.NumLabel == nil {
				entry.NumLabel = map[string][]int64{}
			}
			entry.NumLabel[tag.Key] = []int64{tag.Number}
			continue
		}
		if entry.Label == nil {
			entry.Label = map[string][]string{}
		}
		entry.Label[tag.Key] = []string{tag.Text}
	}
}

func appendTag(b []byte, tag sample.Attribute) []byte {
	b = appendText(b, tag.Key)
	if tag.IsNumber {
		return binary.AppendVarint(append(b, 1), tag.Number)
	}
	return appendText(append(b, 0), tag.Text)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
