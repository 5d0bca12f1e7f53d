package processctx

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// list is attributes as KEY=VALUE, in their order.
func list(resource []*commonpb.KeyValue) (all []string) {
	for _, a := range resource {
		all = append(all, a.GetKey()+"="+a.GetValue().GetStringValue())
	}
	return all
}

// No key is there twice.
func TestFromEnvironmentKeys(t *testing.T) {
	resource, _ := FromEnvironment("shop", "service.name=other,a=b")
	require.Equal(t, []string{"a=b", "service.name=shop"}, list(resource))
	resource, _ = FromEnvironment("", "a=1,b=2,a=3")
	require.Equal(t, []string{"b=2", "a=3"}, list(resource))
}

// A resource that comes in parts is one, as protobuf has it.
func TestResourceInParts(t *testing.T) {
	first := message(t, []*commonpb.KeyValue{text("a", "1")})
	second := message(t, []*commonpb.KeyValue{text("b", "2")})
	c, err := decode(slices.Concat(first, second))
	require.NoError(t, err)
	require.Equal(t, []string{"a=1", "b=2"}, list(c.Resource))
}

// The estimate has all text: of values, of those in them, and of names.
func TestBytes(t *testing.T) {
	const n = 1000
	long := strings.Repeat("x", n)
	bytes := &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: []byte(long)}}
	nested := &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: []*commonpb.KeyValue{text("k", long)}}}}
	for name, c := range map[string]struct{ small, large *Context }{
		"key":    {&Context{Resource: []*commonpb.KeyValue{text("", "")}}, &Context{Resource: []*commonpb.KeyValue{text(long, "")}}},
		"text":   {&Context{Resource: []*commonpb.KeyValue{text("k", "")}}, &Context{Resource: []*commonpb.KeyValue{text("k", long)}}},
		"bytes":  {&Context{Resource: []*commonpb.KeyValue{{Key: "k"}}}, &Context{Resource: []*commonpb.KeyValue{{Key: "k", Value: bytes}}}},
		"list":   {&Context{Resource: []*commonpb.KeyValue{texts("k", "")}}, &Context{Resource: []*commonpb.KeyValue{texts("k", long)}}},
		"nested": {&Context{Resource: []*commonpb.KeyValue{{Key: "k"}}}, &Context{Resource: []*commonpb.KeyValue{{Key: "k", Value: nested}}}},
		"name":   {&Context{Keys: []string{""}}, &Context{Keys: []string{long}}},
		"none":   {nil, &Context{Schema: Schema(long)}},
	} {
		require.GreaterOrEqual(t, c.large.Bytes(), c.small.Bytes()+n, name)
	}
}

// Of a schema only what can be known is kept: it is in each error that it causes.
func TestLongSchema(t *testing.T) {
	c, err := Read(published(message(t, nil, text(keySchema, strings.Repeat("x", 60<<10)))), mapping)
	require.NoError(t, err)
	require.Len(t, c.Schema, maxSchemaBytes)
	for _, known := range []Schema{SchemaTLS} {
		require.Less(t, len(known), maxSchemaBytes)
	}
}

// What is left of a context has no resource, and only names that fit; what went is counted.
func TestReduced(t *testing.T) {
	c := &Context{
		PublishedAtNs: 7, Schema: SchemaTLS, LeftOut: 3, Keys: []string{"tenant", "route"},
		Resource: []*commonpb.KeyValue{text("a", "1"), text("b", "2")},
	}
	names := 2*nameBytes + 2*len("tenantroute")
	want := &Context{PublishedAtNs: 7, Schema: SchemaTLS, LeftOut: 5, Keys: c.Keys}
	require.Equal(t, want, c.Reduced(names))
	want.Keys = nil
	require.Equal(t, want, c.Reduced(names-1))
	require.Len(t, c.Resource, 2, "the whole one stays")
}
