// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

const (
	buildIDKeyPrefix = "process.executable.build_id."
	keyFrameType     = "profile.frame.type"
)

// dictionary is the dictionary of one batch with its tables looked up as far as they
// are used. Indexes come from outside: each lookup says whether it was in range.
type dictionary struct {
	pprofile.ProfilesDictionary
	texts      sample.Texts
	mappings   []*sample.Mapping
	locations  []*sample.Location
	attributes []*sample.Attribute
	work       int // that samples may still make by what they refer to
}

func newDictionary(d pprofile.ProfilesDictionary) *dictionary {
	return &dictionary{
		ProfilesDictionary: d,
		texts:              sample.Texts{},
		mappings:           make([]*sample.Mapping, d.MappingTable().Len()),
		locations:          make([]*sample.Location, d.LocationTable().Len()),
		attributes:         make([]*sample.Attribute, d.AttributeTable().Len()),
		work:               sample.MaxWork,
	}
}

func (d *dictionary) text(i int32) (string, bool) {
	if i < 0 || int(i) >= d.StringTable().Len() {
		return "", false
	}
	return d.texts.Of(d.StringTable().At(int(i))), true
}

func (d *dictionary) attribute(i int32) (*sample.Attribute, bool) {
	if i < 0 || int(i) >= len(d.attributes) {
		return nil, false
	}
	if d.attributes[i] == nil {
		entry := d.AttributeTable().At(int(i))
		key, ok := d.text(entry.KeyStrindex())
		if !ok {
			return nil, false
		}
		a := newAttribute(d.texts, key, entry.Value())
		d.attributes[i] = &a
	}
	return d.attributes[i], true
}

func (d *dictionary) location(i int32) (*sample.Location, bool) {
	if i < 0 || int(i) >= len(d.locations) {
		return nil, false
	}
	if d.locations[i] == nil {
		entry := d.LocationTable().At(int(i))
		// One with an index out of range is looked up for each sample.
		d.work -= entry.AttributeIndices().Len() + entry.Lines().Len()
		l := &sample.Location{Address: entry.Address(), Type: d.frameType(entry.AttributeIndices())}
		m, ok := d.mapping(entry.MappingIndex())
		if !ok {
			return nil, false
		}
		l.Mapping = *m
		for _, e := range entry.Lines().All() {
			if len(l.Lines) == sample.MaxLines {
				break
			}
			f, ok := d.function(e.FunctionIndex())
			if !ok {
				return nil, false
			}
			l.Lines = append(l.Lines, sample.Line{Function: f, Line: e.Line()})
		}
		d.locations[i] = l
	}
	return d.locations[i], true
}

func (d *dictionary) mapping(i int32) (*sample.Mapping, bool) {
	if i < 0 || int(i) >= len(d.mappings) {
		return nil, false
	}
	if d.mappings[i] == nil {
		entry := d.MappingTable().At(int(i))
		file, ok := d.text(entry.FilenameStrindex())
		if !ok {
			return nil, false
		}
		d.mappings[i] = &sample.Mapping{
			Start: entry.MemoryStart(), Limit: entry.MemoryLimit(), Offset: entry.FileOffset(),
			File: file, BuildID: d.buildID(entry.AttributeIndices()),
		}
	}
	return d.mappings[i], true
}

// frameType says what made the code of a location.
func (d *dictionary) frameType(indices pcommon.Int32Slice) string {
	for _, i := range indices.All() {
		if a, ok := d.attribute(i); ok && a.Key == keyFrameType {
			return a.Text
		}
	}
	return ""
}

// buildID prefers the id that symbol servers and pprof know.
func (d *dictionary) buildID(indices pcommon.Int32Slice) string {
	id := ""
	for _, i := range indices.All() {
		a, ok := d.attribute(i)
		if !ok {
			continue
		}
		switch kind, _ := strings.CutPrefix(a.Key, buildIDKeyPrefix); {
		case kind == "gnu":
			return a.Text
		case kind == "htlhash" && id == "":
			id = a.Text
		}
	}
	return id
}

func (d *dictionary) function(i int32) (sample.Function, bool) {
	if i < 0 || int(i) >= d.FunctionTable().Len() {
		return sample.Function{}, false
	}
	entry := d.FunctionTable().At(int(i))
	name, ok := d.text(entry.NameStrindex())
	file, ok2 := d.text(entry.FilenameStrindex())
	return sample.Function{Name: name, File: file, StartLine: max(entry.StartLine(), 0)}, ok && ok2
}

// link returns the trace and span id, "" for those that are zero.
func (d *dictionary) link(i int32) (traceID, spanID string, ok bool) {
	if i == 0 && d.LinkTable().Len() == 0 {
		return "", "", true
	}
	if i < 0 || int(i) >= d.LinkTable().Len() {
		return "", "", false
	}
	trace, span := d.LinkTable().At(int(i)).TraceID(), d.LinkTable().At(int(i)).SpanID()
	return hexID(trace[:]), hexID(span[:]), true
}
