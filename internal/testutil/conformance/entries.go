package conformance

import (
	"fmt"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func (c *checker) attribute(where string, a pprofile.KeyValueAndUnit) {
	if c.bound(where, "key_strindex", stringTable, a.KeyStrindex()) && c.string(a.KeyStrindex()) == "" {
		c.errorf(where, "the key is empty")
	}
	c.bound(where, "unit_strindex", stringTable, a.UnitStrindex())
	if a.Value().Type() == pcommon.ValueTypeEmpty {
		c.errorf(where, "the value is not set")
	}
	c.value(where, a.Value())
}

func (c *checker) function(where string, f pprofile.Function) {
	c.bound(where, "name_strindex", stringTable, f.NameStrindex())
	c.bound(where, "system_name_strindex", stringTable, f.SystemNameStrindex())
	c.bound(where, "filename_strindex", stringTable, f.FilenameStrindex())
	if f.StartLine() < 0 {
		c.errorf(where, "start_line %d is negative", f.StartLine())
	}
}

func (c *checker) mapping(where string, m pprofile.Mapping) {
	c.bound(where, "filename_strindex", stringTable, m.FilenameStrindex())
	if m.MemoryLimit() != 0 && m.MemoryLimit() <= m.MemoryStart() {
		c.errorf(where, "memory_limit %#x is not above memory_start %#x", m.MemoryLimit(), m.MemoryStart())
	}
	c.attributes(where, m.AttributeIndices())
}

func (c *checker) location(where string, l pprofile.Location) {
	if c.bound(where, "mapping_index", mappingTable, l.MappingIndex()) && l.MappingIndex() != 0 {
		m := c.dict.MappingTable().At(int(l.MappingIndex()))
		if m.MemoryLimit() > m.MemoryStart() && (l.Address() < m.MemoryStart() || l.Address() >= m.MemoryLimit()) {
			c.errorf(where, "address %#x is outside of its mapping %#x-%#x", l.Address(), m.MemoryStart(), m.MemoryLimit())
		}
	}
	for i, line := range l.Lines().All() {
		at := fmt.Sprintf("%s.lines[%d]", where, i)
		if line.FunctionIndex() == 0 {
			c.errorf(at, "function_index is not set")
		}
		c.bound(at, "function_index", functionTable, line.FunctionIndex())
		if line.Line() < 0 || line.Column() < 0 {
			c.errorf(at, "line %d, column %d: negative", line.Line(), line.Column())
		}
	}
	if _, ok := c.attributes(where, l.AttributeIndices())[frameType]; !ok {
		c.errorf(where, "has no %s", frameType)
	}
}

// frameType is an attribute that the Elasticsearch exporter of opentelemetry-collector-contrib insists on.
const frameType = "profile.frame.type"

// stack checks a stack. One without locations equals entry 0 and is reported so.
func (c *checker) stack(where string, s pprofile.Stack) {
	for i, index := range s.LocationIndices().All() {
		field := fmt.Sprintf("location_indices[%d]", i)
		if index == 0 {
			c.errorf(where, "%s is not set", field)
		}
		c.bound(where, field, locationTable, index)
	}
}

func (c *checker) link(where string, l pprofile.Link) {
	if l.TraceID().IsEmpty() || l.SpanID().IsEmpty() {
		c.errorf(where, "trace id or span id is zero")
	}
}

// attributes checks a list of references to the attribute table and returns the
// values by key.
func (c *checker) attributes(where string, indexes pcommon.Int32Slice) map[string]pcommon.Value {
	values := map[string]pcommon.Value{}
	for i, index := range indexes.All() {
		field := fmt.Sprintf("attribute_indices[%d]", i)
		if index == 0 {
			c.errorf(where, "%s is not set", field)
			continue
		}
		if !c.bound(where, field, attributeTable, index) {
			continue
		}
		a := c.dict.AttributeTable().At(int(index))
		key := c.string(a.KeyStrindex())
		if _, ok := values[key]; ok {
			c.errorf(where, "two attributes have the key %q", key)
		}
		values[key] = a.Value()
	}
	return values
}

// string returns a string of the table, "" if there is none.
func (c *checker) string(index int32) string {
	if !c.inRange(stringTable, index) || len(c.used[stringTable]) == 0 {
		return ""
	}
	return c.dict.StringTable().At(int(index))
}

// value checks all strings in a value.
func (c *checker) value(where string, v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		c.utf8(where, v.Str())
	case pcommon.ValueTypeMap:
		c.attributeMap(where, v.Map())
	case pcommon.ValueTypeSlice:
		for _, e := range v.Slice().All() {
			c.value(where, e)
		}
	}
}

func (c *checker) attributeMap(where string, m pcommon.Map) {
	seen := map[string]bool{}
	for k, v := range m.All() {
		c.utf8(where, k)
		if k == "" {
			c.errorf(where, "an attribute key is empty")
		}
		if seen[k] {
			c.errorf(where, "two attributes have the key %q", k)
		}
		seen[k] = true
		c.value(where, v)
	}
}

func (c *checker) utf8(where, s string) {
	if !utf8.ValidString(s) {
		c.errorf(where, "%q is not valid UTF-8", s)
	}
}
