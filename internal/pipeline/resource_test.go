//go:build linux && (amd64 || arm64)

package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/customlabels/otelcol-customlabels/internal/process"
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
		{Key: "process.runtime.name", Value: text("node")},
	})
	require.Equal(t, map[string]any{
		"service.name": "shop", "only.there": "x",
		"bool": true, "int": int64(-1), "double": 0.5, "bytes": []byte{0xff},
		"array":                []any{"a", int64(2), nil},
		"list":                 map[string]any{"k": "again"},
		"process.runtime.name": "node",
	}, attrs.AsRaw())
}

// What only the kernel decides no process says of itself, in its context or its environment, also where the kernel says
// nothing. What only looks like it stays.
func TestResourceDecided(t *testing.T) {
	of := func(keys ...string) (list []*commonpb.KeyValue) {
		for _, key := range keys {
			list = append(list, &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "root"}}})
		}
		return list
	}
	decided := of(
		"process.pid", "process.owner", "process.user.id", "process.user.name", "process.real_user.id", "process.real_user.name",
		"process.saved_user.id", "process.saved_user.name", "process.executable.name", "process.executable.path",
		"process.executable.build_id.gnu", "process.executable.build_id.go", "process.executable.build_id.htlhash",
		"process.command", "process.command_line", "process.command_args", "container.id", "k8s.pod.uid",
		"container_id", "process_pid", "process-executable name", "process.real.user.id", // as some backends keep them
	)
	others := []string{"process.runtime.version", "process.ownership", "process.commander", "user.id", "container.name"}
	for name, info := range map[string]*process.Info{
		"context":     {Resource: append(of(others...), decided...)},
		"environment": {Environment: append(of(others...), decided...)},
	} {
		attrs := pcommon.NewMap()
		putProcess(attrs, info)
		want := map[string]any{}
		for _, key := range others {
			want[key] = "root"
		}
		require.Equal(t, want, attrs.AsRaw(), name)
	}
}

// Of what a process says of itself, its context goes before its environment, and what the kernel
// says goes before both.
func TestResourceOfProcess(t *testing.T) {
	text := func(key, s string) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}}
	}
	info := &process.Info{
		PID: 7, Name: "x", Path: "/bin/x", UID: 10, ContainerID: "c", PodUID: "p",
		Environment: []*commonpb.KeyValue{text("service.name", "environment"), text("container.id", "other")},
		Resource:    []*commonpb.KeyValue{text("service.name", "context"), text("process.real_user.id", "0")},
	}
	attrs := pcommon.NewMap()
	putProcess(attrs, info)
	want := map[string]any{
		"service.name": "context", "container.id": "c", "k8s.pod.uid": "p", "process.pid": int64(7),
		"process.executable.name": "x", "process.executable.path": "/bin/x",
	}
	require.Equal(t, want, attrs.AsRaw(), "the user is not known yet")
	info.Loaded, info.CommandLine = true, []string{"/bin/x", "a b", ""}
	putProcess(attrs, info)
	want["process.real_user.id"] = int64(10)
	want["process.command_args"] = []any{"/bin/x", "a b", ""}
	require.Equal(t, want, attrs.AsRaw())
}

// TestUnknownService: a process that names no service has one by its executable's name.
func TestUnknownService(t *testing.T) {
	named := func(v *commonpb.AnyValue) []*commonpb.KeyValue {
		return []*commonpb.KeyValue{{Key: "service.name", Value: v}}
	}
	for name, tc := range map[string]struct {
		info *process.Info
		want string
	}{
		"by its executable":   {&process.Info{Name: "bash"}, "unknown_service:bash"},
		"nothing known":       {&process.Info{}, "unknown_service"},
		"the kernel's":        {&process.Info{Name: "kworker/0:1-events", KernelThread: true}, "unknown_service:kernel"},
		"its own":             {&process.Info{Name: "bash", Resource: named(&commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "shop"}})}, "shop"},
		"an empty one":        {&process.Info{Name: "bash", Resource: named(&commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{}})}, "unknown_service:bash"},
		"one that is no text": {&process.Info{Name: "bash", Resource: named(&commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: 7}})}, "unknown_service:bash"},
	} {
		for _, namedOnly := range []bool{false, true} {
			k := known{infos: map[uint64]*process.Info{7: tc.info}, namedOnly: namedOnly}
			attrs := pcommon.NewMap()
			k.Resource(7, attrs)
			got, ok := attrs.Get("service.name")
			if namedOnly && strings.HasPrefix(tc.want, "unknown_service") {
				require.True(t, !ok || got.Str() == "", name)
				continue
			}
			require.True(t, ok, name)
			require.Equal(t, tc.want, got.Str(), name)
		}
	}
	for name, resource := range map[string]func(uint64, pcommon.Map){
		"profiles": newResolver(nil).Resource,
		"metrics":  (&known{}).Resource,
	} {
		attrs := pcommon.NewMap()
		resource(1, attrs)
		got, _ := attrs.Get("service.name")
		require.Equal(t, "unknown_service", got.Str(), "%s: of a process that is not known", name)
	}
}
