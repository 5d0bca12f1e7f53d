// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// RequestBombs are requests of few bytes whose messages take much memory.
func RequestBombs(n int) map[string][]byte {
	long := []byte(strings.Repeat("x", sample.MaxTextBytes))
	known := append(append(In(nil, 2, 1), In(nil, 2, 3)...), In(nil, 2, 5)...) // mapping, function, string
	return map[string][]byte{
		"resources":          Empty(n, 1),
		"resource attribute": Empty(n, 1, 1, 1),
		"entities":           Empty(n, 1, 1, 3),
		"scopes":             Empty(n, 1, 2),
		"profiles":           Empty(n, 1, 2, 2),
		"samples":            Empty(n, 1, 2, 2, 2),
		"values":             In(make([]byte, 8*n), 1, 2, 2, 2, 4),
		"unpacked values":    In(bytes.Repeat(Number(4, 1), 8*n), 1, 2, 2, 2),
		"indexes":            In(make([]byte, 8*n), 1, 2, 2, 2, 2),
		"frames":             In(make([]byte, 8*n), 2, 7, 1),
		"mappings":           Empty(n, 2, 1),
		"locations":          append(Empty(n, 2, 2), known...),
		"lines":              append(Empty(n, 2, 2, 3), known...),
		"functions":          Empty(n, 2, 3),
		"links":              Empty(n, 2, 4),
		"strings":            Empty(n, 2, 5),
		"attributes":         append(Empty(n, 2, 6), known...),
		"stacks":             Empty(n, 2, 7),
		"list values":        Empty(n, 2, 6, 2, 5, 1),
		"list pairs":         Empty(n, 2, 6, 2, 6, 1),
		"one long key":       append(In(bytes.Repeat(In(Number(1, 1), 6), n), 2), append(In(nil, 2, 5), In(long, 2, 5)...)...),
	}
}

// LookupBombs are batches of few bytes that refer so many times to a list of n attributes.
func LookupBombs(n, times int) map[string]*Batch {
	list := make([]int32, n)
	batch := func(stacks int) *Batch {
		b := New().Process(7, "writer")
		for i := range stacks {
			b.Dict.StackTable().AppendEmpty()
			s := b.Profile.Samples().AppendEmpty()
			s.SetStackIndex(int32(1 + i))
			s.Values().Append(1)
		}
		return b
	}
	mapping := batch(times/sample.MaxFrames + 1)
	mapping.Dict.MappingTable().At(0).AttributeIndices().FromRaw(list)
	for i := range times {
		mapping.Dict.LocationTable().AppendEmpty()
		mapping.Dict.StackTable().At(1 + i/sample.MaxFrames).LocationIndices().Append(int32(1 + i))
	}
	location := batch(times)
	bad := location.Dict.LocationTable().At(0)
	bad.AttributeIndices().FromRaw(list)
	bad.Lines().AppendEmpty().SetFunctionIndex(-1)
	for _, stack := range location.Dict.StackTable().All() {
		stack.LocationIndices().Append(0)
	}
	return map[string]*Batch{"a mapping of many locations": mapping, "a location out of range": location}
}

// LabelBomb is a batch of few bytes whose samples have many labels each, with long keys: those
// of their resource.
func LabelBomb() *Batch {
	b := New().Process(7, "writer")
	labels := b.Profiles.ResourceProfiles().At(0).Resource().Attributes()
	for i := labels.Len(); i < sample.MaxAttributes; i++ {
		labels.PutInt(fmt.Sprintf("%0*d", sample.MaxTextBytes, i), 0)
	}
	for range sample.MaxWork / sample.MaxAttributes {
		b.Profile.Samples().AppendEmpty().Values().Append(1)
	}
	return b
}

// PprofBombs are profiles of pprof of few bytes whose messages take much memory.
func PprofBombs(n int) map[string][]byte {
	numbered := func(field protowire.Number) []byte {
		var b []byte
		for i := range n {
			b = append(b, In(Number(1, uint64(i+1)), field)...)
		}
		return b
	}
	kind := append(In(nil, 6), append(In([]byte("cpu"), 6), In([]byte("nanoseconds"), 6)...)...)
	kind = append(kind, In(append(Number(1, 1), Number(2, 2)...), 1)...)
	sample := In([]byte{0}, 2)
	return map[string][]byte{
		"types":     append(Empty(n, 1), kind...),
		"samples":   append(bytes.Repeat(In(sample, 2), n), kind...),
		"labels":    append(bytes.Repeat(In(append(In(append(Number(1, 1), Number(2, 2)...), 3), sample...), 2), n), kind...),
		"mappings":  append(numbered(3), kind...),
		"locations": append(numbered(4), kind...),
		"lines":     append(In(append(Number(1, 1), Empty(n, 4)...), 4), kind...),
		"functions": append(numbered(5), kind...),
		"strings":   append(append([]byte{}, kind...), Empty(n, 6)...),
		"comments":  append(In(make([]byte, n), 13), kind...),
	}
}

// Packed is a gzipped file of a part again and again: such files may follow one another.
func Packed(part []byte, times int) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(part) // into memory
	_ = w.Close()
	return bytes.Repeat(b.Bytes(), times)
}
