//go:build amd64 || arm64

package customlabelsreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestPutResource(t *testing.T) {
	text := func(s string) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
	}
	array := &commonpb.ArrayValue{Values: []*commonpb.AnyValue{text("a"), {Value: &commonpb.AnyValue_IntValue{IntValue: 2}}, {}}}
	list := &commonpb.KeyValueList{Values: []*commonpb.KeyValue{{Key: "k", Value: text("v")}, {Key: "k", Value: text("again")}}}
	attrs := pcommon.NewMap()
	putResource(attrs, []*commonpb.KeyValue{{Key: "service.name", Value: text("of the environment")}, {Key: "only.there", Value: text("x")}})
	putResource(attrs, []*commonpb.KeyValue{
		{Key: "service.name", Value: text("shop")},
		{Key: "bool", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}},
		{Key: "int", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: -1}}},
		{Key: "double", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: 0.5}}},
		{Key: "bytes", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: []byte{0xff}}}},
		{Key: "array", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: array}}},
		{Key: "list", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: list}}},
		{Key: "process.pid", Value: text("1")},
		{Key: "container.id", Value: text("another's")},
		{Key: "process.executable.path", Value: text("/bin/other")},
	})
	require.Equal(t, map[string]any{
		"service.name": "shop", "only.there": "x",
		"bool": true, "int": int64(-1), "double": 0.5, "bytes": []byte{0xff},
		"array": []any{"a", int64(2), nil},
		"list":  map[string]any{"k": "again"},
	}, attrs.AsRaw())
}
