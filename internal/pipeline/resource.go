//go:build linux && (amd64 || arm64)

package pipeline

import (
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/process"
)

// putProcess puts what is known of a process; nothing of the one that stands for all
// beyond the table's bound.
func putProcess(attrs pcommon.Map, info *process.Info) {
	putResource(attrs, info.Environment)
	putResource(attrs, info.Resource)
	// What the kernel says of the process has the last word: a program cannot
	// pass for another one.
	if info.PID != 0 {
		attrs.PutInt("process.pid", int64(info.PID))
	}
	if info.Name != "" {
		attrs.PutStr("process.executable.name", info.Name)
	}
	if info.Path != "" {
		attrs.PutStr("process.executable.path", info.Path)
	}
	if len(info.CommandLine) > 0 {
		args := attrs.PutEmptySlice("process.command_args")
		for _, arg := range info.CommandLine {
			args.AppendEmpty().SetStr(arg)
		}
	}
	if info.ContainerID != "" {
		attrs.PutStr("container.id", info.ContainerID)
	}
	if info.PodUID != "" {
		attrs.PutStr("k8s.pod.uid", info.PodUID)
	}
	if info.Loaded {
		attrs.PutInt("process.real_user.id", int64(info.UID))
	}
}

// kernelService follows unknown_service for threads of the kernel, whose names come and go
// with their work: a backend would have a service for each.
const kernelService = "kernel"

// putUnknownService names the service of a process that has not named one, as the semantic
// conventions ask of SDKs: unknown_service:NAME, or unknown_service without a name. Backends
// tell programs apart by it.
func putUnknownService(attrs pcommon.Map, info *process.Info) {
	if v, ok := attrs.Get("service.name"); ok && v.Str() != "" {
		return
	}
	name := "unknown_service"
	switch {
	case info.KernelThread:
		name += ":" + kernelService
	case info.Name != "":
		name += ":" + info.Name
	}
	attrs.PutStr("service.name", name)
}

// putResource takes over the resource that a process has published. The builder
// of the profiles cleans strings that are not UTF-8; these are, as protobuf
// strings have to be.
func putResource(to pcommon.Map, attributes []*commonpb.KeyValue) {
	for _, a := range attributes {
		if !labels.OfKernel(a.GetKey()) {
			putValue(a.GetValue(), to.PutEmpty(a.GetKey()))
		}
	}
}

// putValue copies a value, whose depth the reader of the context has bounded.
func putValue(from *commonpb.AnyValue, to pcommon.Value) {
	switch v := from.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		to.SetStr(v.StringValue)
	case *commonpb.AnyValue_BoolValue:
		to.SetBool(v.BoolValue)
	case *commonpb.AnyValue_IntValue:
		to.SetInt(v.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		to.SetDouble(v.DoubleValue)
	case *commonpb.AnyValue_BytesValue:
		to.SetEmptyBytes().FromRaw(v.BytesValue)
	case *commonpb.AnyValue_ArrayValue:
		list := to.SetEmptySlice()
		for _, item := range v.ArrayValue.GetValues() {
			putValue(item, list.AppendEmpty())
		}
	case *commonpb.AnyValue_KvlistValue:
		list := to.SetEmptyMap()
		for _, item := range v.KvlistValue.GetValues() {
			putValue(item.GetValue(), list.PutEmpty(item.GetKey()))
		}
	}
}
