// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

const (
	// labelPrefix stands before the keys of labels whose semantic convention is open.
	labelPrefix = "process.context.label."
	// maxTextBytes bounds every string that outlives the batch it came in.
	maxTextBytes = 1024

	keyTraceID     = "trace_id"
	keySpanID      = "span_id"
	keyPID         = "process.pid"
	keyProcessName = "process.executable.name"
)

// sample is one sample of an on-CPU or off-CPU profile with everything looked up. It and what
// it points at are valid during the call that hands it over.
type sample struct {
	kind       samplestore.Kind
	hits       int64
	cpuNs      int64 // off the CPU, if that is the kind
	periodNs   int64 // 0 off the CPU
	points     []samplestore.Point
	process    *process
	stack      []*location // leaf first
	attributes []attribute
	traceID    string // lower-case hex; "" if there is none
	spanID     string
}

// process is what a resource says about the process of its samples.
type process struct {
	pid        int64 // 0: not said
	name       string
	attributes []attribute
}

// attribute is a key with a value: any bytes. Numbers keep their number.
type attribute struct {
	key      string
	text     string
	number   int64
	isNumber bool
}

// What a stack is made of, as the store of samples has it.
type (
	location = samplestore.Location
	mapping  = samplestore.Mapping
	line     = samplestore.Line
	function = samplestore.Function
)

// frameName is what a location is called in a table: its innermost function.
func frameName(l *location) string {
	if named(l) {
		return l.Lines[0].Function.Name
	}
	return "0x" + strconv.FormatUint(l.Address, 16)
}

// top is where a sample's time goes: the innermost function, and off the CPU, where that
// is always the kernel's scheduler, the innermost one of the program itself. nil: there is none.
func (s *sample) top() *location {
	if s.offCPU() {
		for _, l := range s.stack {
			if !strings.HasPrefix(l.Mapping.File, "[kernel") {
				return l
			}
		}
	}
	if len(s.stack) == 0 {
		return nil
	}
	return s.stack[0]
}

func (s *sample) offCPU() bool { return s.kind == samplestore.OffCPU }

// named reports whether the innermost function is known.
func named(l *location) bool {
	return len(l.Lines) > 0 && l.Lines[0].Function.Name != ""
}

// lookup finds the value of a label key: as a sample attribute under this name, with
// the prefix for labels, or as an attribute of the resource.
func (s *sample) lookup(key string) (string, bool) {
	for _, name := range []string{key, labelPrefix + key} {
		if text, ok := find(s.attributes, name); ok {
			return text, true
		}
	}
	return find(s.process.attributes, key)
}

func find(attributes []attribute, key string) (string, bool) {
	for i := range attributes {
		if attributes[i].key == key {
			return attributes[i].text, true
		}
	}
	return "", false
}

// newAttribute copies a key and a value.
func newAttribute(known texts, key string, value pcommon.Value) attribute {
	a := attribute{key: known.of(key)}
	switch value.Type() {
	case pcommon.ValueTypeInt:
		a.number, a.isNumber = value.Int(), true
		a.text = strconv.FormatInt(a.number, 10)
	case pcommon.ValueTypeBytes:
		a.text = known.of(string(value.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		a.text = fmt.Sprintf("(%s)", strings.ToLower(value.Type().String())) // no label is one
	default:
		a.text = known.of(value.AsString())
	}
	return a
}

// texts are the texts of a batch, each once: any number of entries may refer to one.
type texts map[string]string

// of returns a text, cut, that shares no memory with the batch, which is much larger.
func (t texts) of(s string) string {
	s = cut(s)
	known, ok := t[s]
	if !ok {
		known = strings.Clone(s)
		t[known] = known
	}
	return known
}

// cut shortens to maxTextBytes, between two characters.
func cut(s string) string {
	if len(s) <= maxTextBytes {
		return s
	}
	end := maxTextBytes
	for end > maxTextBytes-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

func hexID(id []byte) string {
	for _, b := range id {
		if b != 0 {
			return hex.EncodeToString(id)
		}
	}
	return ""
}
