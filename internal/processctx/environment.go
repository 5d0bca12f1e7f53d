package processctx

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// The environment variables by which an OpenTelemetry SDK is told its resource
// (OpenTelemetry specification, "Resource SDK" and "Environment Variable
// Specification").
const (
	EnvServiceName        = "OTEL_SERVICE_NAME"
	EnvResourceAttributes = "OTEL_RESOURCE_ATTRIBUTES"
)

const keyServiceName = "service.name"

// FromEnvironment returns the resource that the values of the two variables
// describe: at most MaxAttributes texts, no key twice. The service's name goes
// before one among the attributes, and of attributes of one key the last counts.
// An entry that is not KEY=VALUE, percent-encoded UTF-8, makes all attributes
// void, as the specification asks. leftOut is how many are lost by that, and by
// the bound.
func FromEnvironment(serviceName, attributes string) (resource []*commonpb.KeyValue, leftOut int) {
	resource, leftOut = parseAttributes(attributes)
	switch {
	case serviceName == "":
		return resource, leftOut
	case !utf8.ValidString(serviceName):
		return resource, leftOut + 1
	}
	return append(without(resource, keyServiceName), newText(keyServiceName, serviceName)), leftOut
}

func parseAttributes(list string) (resource []*commonpb.KeyValue, leftOut int) {
	if strings.TrimSpace(list) == "" {
		return nil, 0
	}
	for entry := range strings.SplitSeq(list, ",") {
		key, value, found := strings.Cut(entry, "=")
		key, err1 := url.PathUnescape(strings.TrimSpace(key))
		value, err2 := url.PathUnescape(strings.TrimSpace(value))
		if !found || key == "" || err1 != nil || err2 != nil || !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, 1 + strings.Count(list, ",")
		}
		if strings.HasPrefix(key, threadLocalPrefix) {
			continue
		}
		resource = without(resource, key)
		if len(resource) < MaxAttributes-1 { // and the service's name
			resource = append(resource, newText(key, value))
		} else {
			leftOut++
		}
	}
	return resource, leftOut
}

func without(resource []*commonpb.KeyValue, key string) []*commonpb.KeyValue {
	return slices.DeleteFunc(resource, func(a *commonpb.KeyValue) bool { return a.GetKey() == key })
}

func newText(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}
