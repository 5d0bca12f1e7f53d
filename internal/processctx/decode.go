package processctx

import (
	"slices"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	// MaxAttributes of the resource are kept, of at most maxResourceBytes; the others are counted. Values that
	// hold others take many times what their bytes in the message do. Nor has a map in a value more keys.
	MaxAttributes    = 128
	maxResourceBytes = 128 << 10

	// maxDepth bounds how deep values and the messages around them may be nested.
	maxDepth = 16
)

// The fields of opentelemetry.proto.processcontext.v1development.ProcessContext,
// for which there are no published Go types.
const (
	fieldResource   = 1 // resource.v1.Resource
	fieldAttributes = 2 // repeated common.v1.KeyValue
)

// Keys of the attributes that coordinate with readers of thread contexts (OTEP
// 4947). They are never exported.
const (
	threadLocalPrefix = "threadlocal."
	keySchema         = "threadlocal.schema_version"
	keyKeyMap         = "threadlocal.attribute_key_map"
)

// maxKeys is the number of keys that a thread context can refer to: its indices
// have one byte.
const maxKeys = 256

// maxSchemaBytes are kept of a schema; those that are known are shorter.
const maxSchemaBytes = 64

// Context is what a process has published. It is not changed after Read.
type Context struct {
	// PublishedAtNs is CLOCK_BOOTTIME; it changes with each update.
	PublishedAtNs uint64
	// Resource describes the process. It has at most MaxAttributes attributes, which take at most
	// 128 KiB of memory (ResourceBytes), no key twice, and none of the thread context's coordination.
	Resource []*commonpb.KeyValue
	// LeftOut attributes of the resource: beyond these, without a key or a value, or the
	// same key again.
	LeftOut int
	// Schema says how thread contexts are to be read, in its first 64 bytes; "" if the context does not.
	Schema Schema
	// Keys are the attribute names of thread contexts by index; nil if they are
	// not published (yet).
	Keys []string
}

// Schema is how the threads of a process publish their context.
type Schema string

// The schemas that are known. A name that ends in _dev is that of prototypes of the same
// record.
const (
	SchemaTLS         Schema = "tls_v1" // of the merged OTEP
	SchemaTLSDev      Schema = "tls_v1_dev"
	SchemaTLSDesc     Schema = "tlsdesc_v1" // its name before
	SchemaTLSDescDev  Schema = "tlsdesc_v1_dev"
	SchemaGoLabels    Schema = "go_pprof_labels_v1"
	SchemaNodeJS      Schema = "nodejs_v1"
	SchemaNodeJSDev   Schema = "nodejs_v1_dev"
	SchemaUnpublished Schema = ""
)

// TLS reports whether threads publish by the thread-local variable of OTEP 4947.
func (s Schema) TLS() bool {
	switch s {
	case SchemaTLS, SchemaTLSDev, SchemaTLSDesc, SchemaTLSDescDev:
		return true
	}
	return false
}

// NodeJS reports whether threads publish by V8's async context.
func (s Schema) NodeJS() bool { return s == SchemaNodeJS || s == SchemaNodeJSDev }

func decode(payload []byte) (*Context, error) {
	c := &Context{}
	var resource resourcepb.Resource
	options := proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth}
	for off := 0; off < len(payload); {
		number, typ, n := protowire.ConsumeTag(payload[off:])
		if n < 0 {
			return nil, &FormatError{off, "malformed tag", protowire.ParseError(n)}
		}
		if typ != protowire.BytesType || number != fieldResource && number != fieldAttributes {
			value := protowire.ConsumeFieldValue(number, typ, payload[off+n:])
			if value < 0 {
				return nil, &FormatError{off, "malformed field", protowire.ParseError(value)}
			}
			off += n + value
			continue
		}
		value, length := protowire.ConsumeBytes(payload[off+n:])
		if length < 0 {
			return nil, &FormatError{off, "malformed field", protowire.ParseError(length)}
		}
		if number == fieldResource {
			// Several are one, as with any protobuf message.
			merge := options
			merge.Merge = true
			if err := merge.Unmarshal(value, &resource); err != nil {
				return nil, &FormatError{off, "malformed resource", err}
			}
		} else {
			var attribute commonpb.KeyValue
			if err := options.Unmarshal(value, &attribute); err != nil {
				return nil, &FormatError{off, "malformed attribute", err}
			}
			c.coordinate(&attribute)
		}
		off += n + length
	}
	c.setResource(resource.GetAttributes())
	return c, nil
}

// crowded reports whether a value has a map of more than MaxAttributes keys: each of them is compared with the others.
func crowded(v *commonpb.AnyValue) bool {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_ArrayValue:
		return slices.ContainsFunc(v.ArrayValue.GetValues(), crowded)
	case *commonpb.AnyValue_KvlistValue:
		list := v.KvlistValue.GetValues()
		return len(list) > MaxAttributes || slices.ContainsFunc(list, func(a *commonpb.KeyValue) bool { return crowded(a.GetValue()) })
	}
	return false
}

// setResource keeps the attributes that can be exported. Of a key that comes
// twice the first stays.
func (c *Context) setResource(attributes []*commonpb.KeyValue) {
	seen := make(map[string]struct{}, min(len(attributes), MaxAttributes))
	sum := 0
	for _, a := range attributes {
		if strings.HasPrefix(a.GetKey(), threadLocalPrefix) {
			continue
		}
		_, twice := seen[a.GetKey()]
		bytes := attributeMemory(a)
		if twice || a.GetKey() == "" || a.GetValue().GetValue() == nil || len(c.Resource) == MaxAttributes || sum+bytes > maxResourceBytes ||
			crowded(a.GetValue()) {
			c.LeftOut++
			continue
		}
		sum += bytes
		seen[a.GetKey()] = struct{}{}
		c.Resource = append(c.Resource, a)
	}
}

// coordinate takes what concerns the thread contexts from an attribute of the
// process context. The last one of a key counts.
func (c *Context) coordinate(a *commonpb.KeyValue) {
	switch a.GetKey() {
	case keySchema:
		schema := a.GetValue().GetStringValue()
		c.Schema = Schema(strings.Clone(schema[:min(len(schema), maxSchemaBytes)]))
	case keyKeyMap:
		values := a.GetValue().GetArrayValue().GetValues()
		c.Keys = make([]string, 0, min(len(values), maxKeys))
		for _, v := range values[:min(len(values), maxKeys)] {
			c.Keys = append(c.Keys, v.GetStringValue()) // "" if it is no string: an index without a name
		}
	}
}
