package conformance

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// dictionary checks every table by itself: the zero entry, duplicates, and what
// each entry says.
func (c *checker) dictionary() {
	for i, s := range c.dict.StringTable().All() {
		if !utf8.ValidString(s) {
			c.errorf(fmt.Sprintf("%v[%d]", stringTable, i), "%q is not valid UTF-8", s)
		}
	}
	entries(c, stringTable, c.dict.StringTable().All(), func(s string) string { return s }, "", nil)
	entries(c, attributeTable, c.dict.AttributeTable().All(), attributeKey, attributeKey(pprofile.NewKeyValueAndUnit()), c.attribute)
	entries(c, functionTable, c.dict.FunctionTable().All(), functionKey, functionKey(pprofile.NewFunction()), c.function)
	entries(c, mappingTable, c.dict.MappingTable().All(), mappingKey, mappingKey(pprofile.NewMapping()), c.mapping)
	entries(c, locationTable, c.dict.LocationTable().All(), locationKey, locationKey(pprofile.NewLocation()), c.location)
	entries(c, stackTable, c.dict.StackTable().All(), stackKey, stackKey(pprofile.NewStack()), c.stack)
	entries(c, linkTable, c.dict.LinkTable().All(), linkKey, linkKey(pprofile.NewLink()), c.link)
}

// entries checks that entry 0 exists and is zero, that no entry is there twice,
// and every entry but the first with check. key has all that tells entries apart.
func entries[T any](c *checker, t table, all func(func(int, T) bool), key func(T) string, zero string, check func(string, T)) {
	if len(c.used[t]) == 0 {
		c.errorf(t.String(), "entry 0 is missing")
	}
	seen := map[string]int{}
	for i, e := range all {
		where := fmt.Sprintf("%v[%d]", t, i)
		k := key(e)
		if i == 0 && k != zero {
			c.errorf(where, "is not the zero value")
		}
		if first, ok := seen[k]; ok {
			c.errorf(where, "equals entry %d", first)
		} else {
			seen[k] = i
		}
		if i > 0 && check != nil {
			check(where, e)
		}
	}
}

func attributeKey(a pprofile.KeyValueAndUnit) string {
	return fmt.Sprint(a.KeyStrindex(), a.UnitStrindex(), valueKey(a.Value()))
}

// valueKey tells values apart by type and content.
func valueKey(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeMap:
		var parts []string
		for k, e := range v.Map().All() {
			parts = append(parts, fmt.Sprintf("%q:%s", k, valueKey(e)))
		}
		slices.Sort(parts)
		return fmt.Sprintf("map%q", parts)
	case pcommon.ValueTypeSlice:
		var parts []string
		for _, e := range v.Slice().All() {
			parts = append(parts, valueKey(e))
		}
		return fmt.Sprintf("slice%q", parts)
	case pcommon.ValueTypeBytes:
		return fmt.Sprintf("bytes%q", v.Bytes().AsRaw())
	default:
		return fmt.Sprintf("%v%q", v.Type(), v.AsString())
	}
}

func functionKey(f pprofile.Function) string {
	return fmt.Sprint(f.NameStrindex(), f.SystemNameStrindex(), f.FilenameStrindex(), f.StartLine())
}

func mappingKey(m pprofile.Mapping) string {
	return fmt.Sprint(m.MemoryStart(), m.MemoryLimit(), m.FileOffset(), m.FilenameStrindex(), setKey(m.AttributeIndices()))
}

func locationKey(l pprofile.Location) string {
	k := fmt.Sprint(l.MappingIndex(), l.Address(), setKey(l.AttributeIndices()))
	for _, line := range l.Lines().All() {
		k += fmt.Sprint(";", line.FunctionIndex(), line.Line(), line.Column())
	}
	return k
}

func stackKey(s pprofile.Stack) string { return fmt.Sprint(s.LocationIndices().AsRaw()) }

func linkKey(l pprofile.Link) string {
	trace, span := l.TraceID(), l.SpanID()
	return fmt.Sprint(trace[:], span[:])
}

// setKey is the same for all orders of the same indexes.
func setKey(indexes pcommon.Int32Slice) string {
	sorted := indexes.AsRaw()
	slices.Sort(sorted)
	return fmt.Sprint(sorted)
}
