package processctx

import (
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// What decoded messages take beside their text.
const (
	attributeBytes = 200 // a KeyValue with its AnyValue and what is in that
	valueBytes     = 120 // an AnyValue likewise
	nameBytes      = 64  // a name, here and by index
)

// Bytes estimates the memory of a context, of which nil has none.
func (c *Context) Bytes() int {
	if c == nil {
		return 0
	}
	return attributeBytes + len(c.Schema) + ResourceBytes(c.Resource) + NamesBytes(c.Keys)
}

// NamesBytes estimates the memory of names of thread context keys, as a list and by index.
func NamesBytes(names []string) (sum int) {
	for _, name := range names {
		sum += nameBytes + 2*len(name)
	}
	return sum
}

// ResourceBytes estimates the memory of attributes.
func ResourceBytes(attributes []*commonpb.KeyValue) (sum int) {
	for _, a := range attributes {
		sum += attributeMemory(a)
	}
	return sum
}

func attributeMemory(a *commonpb.KeyValue) int {
	return attributeBytes + len(a.GetKey()) + textBytes(a.GetValue())
}

// textBytes is the memory of what a value holds; decoding has bounded how deep that is nested.
func textBytes(v *commonpb.AnyValue) (sum int) {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return len(v.StringValue)
	case *commonpb.AnyValue_BytesValue:
		return len(v.BytesValue)
	case *commonpb.AnyValue_ArrayValue:
		for _, e := range v.ArrayValue.GetValues() {
			sum += valueBytes + textBytes(e)
		}
	case *commonpb.AnyValue_KvlistValue:
		sum = ResourceBytes(v.KvlistValue.GetValues())
	}
	return sum
}

// Reduced returns a context without its resource, which keeps the names as long as they
// take at most so many bytes.
func (c *Context) Reduced(maxNameBytes int) *Context {
	reduced := &Context{PublishedAtNs: c.PublishedAtNs, Schema: c.Schema, LeftOut: c.LeftOut + len(c.Resource)}
	if NamesBytes(c.Keys) <= maxNameBytes {
		reduced.Keys = c.Keys
	}
	return reduced
}
