package v8heap_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// FuzzFile gives LayoutOf a hostile file.
func FuzzFile(f *testing.F) {
	without := node24()
	delete(without, minor)
	other := node24()
	other[major], other[minor] = 12, 4
	var reader bytes.Reader
	fuzz.Run(f, [][]byte{image(f, node24()), image(f, without), image(f, other)}, func(t testing.TB, data []byte) {
		reader.Reset(data)
		e, err := elffile.New(&reader, int64(len(data)))
		if err != nil {
			return
		}
		layout, err := v8heap.LayoutOf(e)
		if err != nil {
			if layout != (v8heap.Layout{}) {
				t.Fatalf("%+v beside %v", layout, err)
			}
			return
		}
		if layout.Field != 0x18 && layout.Field != 0x20 || layout.MapType == 0 {
			t.Fatalf("%+v", layout)
		}
	})
}

// releases are the offsets of the first internal field, by version.
var releases = map[[2]int32]uint8{{12, 4}: 0x18, {12, 9}: 0x20, {13, 6}: 0x20, {14, 1}: 0x20, {14, 6}: 0x20}

// FuzzValues changes what a sound file says. Of all that differs from a known build, only
// the version and the type of maps may.
//
//	[0] which of its ints  [1:5] its value  and so on
func FuzzValues(f *testing.F) {
	sound := node24()
	data := image(f, sound)
	names := slices.Sorted(maps.Keys(sound))
	places := placesOf(f, data)
	edit := func(edits ...any) (b []byte) {
		for i := 0; i < len(edits); i += 2 {
			b = append(b, byte(slices.Index(names, edits[i].(string))))
			b = binary.LittleEndian.AppendUint32(b, uint32(edits[i+1].(int)))
		}
		return b
	}
	const mapType = "v8dbg_type_JSMap__JS_MAP_TYPE"
	seeds := [][]byte{
		nil, edit(major, 12, minor, 4), edit(major, 14, mapType, 65535), edit(major, 14, minor, 1),
		edit(mapType, 65536), edit("v8dbg_TaggedSize", 4), edit(major, -13),
	}
	var reader bytes.Reader
	image, ints := make([]byte, len(data)), map[string]int32{}
	fuzz.Run(f, seeds, func(t testing.TB, edits []byte) {
		copy(image, data)
		for name, v := range sound {
			ints[name] = int32(v)
		}
		for ; len(edits) >= 5; edits = edits[5:] {
			name := names[int(edits[0])%len(names)]
			copy(image[places[name]:], edits[1:5])
			ints[name] = int32(binary.LittleEndian.Uint32(edits[1:5]))
		}
		field, known := releases[[2]int32{ints[major], ints[minor]}]
		known = known && ints[mapType] > 0 && ints[mapType] < 1<<16
		for name, v := range sound {
			known = known && (name == major || name == minor || name == mapType || ints[name] == int32(v))
		}
		reader.Reset(image)
		e, err := elffile.New(&reader, int64(len(image)))
		if err != nil {
			t.Fatal(err)
		}
		layout, err := v8heap.LayoutOf(e)
		switch {
		case known && (err != nil || layout != v8heap.Layout{Field: field, MapType: uint16(ints[mapType])}):
			t.Fatalf("%v: %+v, %v", ints, layout, err)
		case !known && !errors.Is(err, v8heap.ErrUnknown):
			t.Fatalf("%v: %+v, %v", ints, layout, err)
		}
	})
}

// placesOf returns where in a file its exported ints are.
func placesOf(t testing.TB, data []byte) map[string]uint64 {
	t.Helper()
	e, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	symbols, err := e.DynamicSymbols()
	require.NoError(t, err)
	places := map[string]uint64{}
	for _, s := range symbols {
		section := e.Sections[s.Section]
		places[s.Name] = s.Value - section.Addr + section.Offset
	}
	return places
}
