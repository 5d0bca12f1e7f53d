package writercheck

import (
	"fmt"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	maxNames = 256 // a key index is a byte
	maxDepth = 16  // of values in values

	fieldResource   = 1
	fieldAttributes = 2

	keySchema = "threadlocal.schema_version"
	keyMap    = "threadlocal.attribute_key_map"
)

// content is what a payload says (OTEP 4719, "Payload Format"), with what readers pass over.
type content struct {
	resource  []*commonpb.KeyValue
	service   string
	empty     int    // resource attributes without key or value
	twice     string // a key that comes again
	misplaced string // a key of the coordination in the resource
	unknown   int    // fields that the message does not have

	schema   string
	names    []string
	hasNames bool
	notText  int // entries of the key map that are no strings
}

func decode(payload []byte) (content, error) {
	var c content
	options := proto.UnmarshalOptions{RecursionLimit: maxDepth, Merge: true}
	var resource resourcepb.Resource
	for off := 0; off < len(payload); {
		number, typ, n := protowire.ConsumeTag(payload[off:])
		if n < 0 {
			return c, fmt.Errorf("at byte %d: %w", off, protowire.ParseError(n))
		}
		length := protowire.ConsumeFieldValue(number, typ, payload[off+n:])
		if length < 0 {
			return c, fmt.Errorf("at byte %d: %w", off, protowire.ParseError(length))
		}
		field := payload[off+n : off+n+length]
		at := off
		off += n + length
		if typ != protowire.BytesType || number != fieldResource && number != fieldAttributes {
			c.unknown++
			continue
		}
		message, _ := protowire.ConsumeBytes(field)
		if number == fieldResource {
			if err := options.Unmarshal(message, &resource); err != nil {
				return c, fmt.Errorf("resource at byte %d: %w", at, err)
			}
			continue
		}
		var attribute commonpb.KeyValue
		if err := options.Unmarshal(message, &attribute); err != nil {
			return c, fmt.Errorf("attribute at byte %d: %w", at, err)
		}
		c.coordinate(&attribute)
	}
	c.describe(resource.GetAttributes())
	return c, nil
}

func (c *content) coordinate(a *commonpb.KeyValue) {
	switch a.GetKey() {
	case keySchema:
		c.schema = a.GetValue().GetStringValue()
	case keyMap:
		c.names, c.notText, c.hasNames = nil, 0, true
		array, ok := a.GetValue().GetValue().(*commonpb.AnyValue_ArrayValue)
		if !ok {
			c.notText++
			return
		}
		for _, v := range array.ArrayValue.GetValues() {
			if _, ok := v.GetValue().(*commonpb.AnyValue_StringValue); !ok {
				c.notText++
			}
			c.names = append(c.names, v.GetStringValue())
		}
	}
}

func (c *content) describe(attributes []*commonpb.KeyValue) {
	seen := map[string]bool{}
	for _, a := range attributes {
		key := a.GetKey()
		switch {
		case strings.HasPrefix(key, "threadlocal."):
			c.misplaced = key
		case key == "" || a.GetValue().GetValue() == nil:
			c.empty++
		case seen[key]:
			c.twice = key
		case key == "service.name":
			c.service = a.GetValue().GetStringValue()
		}
		seen[key] = true
	}
	c.resource = attributes
}
