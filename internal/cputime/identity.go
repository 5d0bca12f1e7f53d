package cputime

import (
	"encoding/binary"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// appendMap appends an encoding of a map that is equal exactly for equal maps, in
// whatever order they have their keys.
func appendMap(b []byte, m pcommon.Map) []byte {
	keys := make([]string, 0, m.Len())
	for k := range m.All() {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b = binary.AppendUvarint(b, uint64(len(keys)))
	for _, k := range keys {
		v, _ := m.Get(k)
		b = appendText(b, k)
		b = appendValue(b, v)
	}
	return b
}

func appendValue(b []byte, v pcommon.Value) []byte {
	b = append(b, byte(v.Type()))
	switch v.Type() {
	case pcommon.ValueTypeStr:
		b = appendText(b, v.Str())
	case pcommon.ValueTypeBool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case pcommon.ValueTypeInt:
		b = binary.LittleEndian.AppendUint64(b, uint64(v.Int()))
	case pcommon.ValueTypeDouble:
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Double()))
	case pcommon.ValueTypeBytes:
		b = binary.AppendUvarint(b, uint64(v.Bytes().Len()))
		b = append(b, v.Bytes().AsRaw()...)
	case pcommon.ValueTypeSlice:
		b = binary.AppendUvarint(b, uint64(v.Slice().Len()))
		for _, e := range v.Slice().All() {
			b = appendValue(b, e)
		}
	case pcommon.ValueTypeMap:
		b = appendMap(b, v.Map())
	}
	return b
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}
