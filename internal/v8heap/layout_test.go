package v8heap_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

const (
	major = "_ZN2v88internal7Version6major_E"
	minor = "_ZN2v88internal7Version6minor_E"
)

// node24 is what the executable of Node.js 24 exports.
func node24() map[string]int {
	return map[string]int{
		major: 13, minor: 6,
		"v8dbg_TaggedSize": 8, "v8dbg_HeapObjectTag": 1, "v8dbg_SmiShiftSize": 31,
		"v8dbg_class_JSObject__internal_fields__uintptr_t": 24,
		"v8dbg_class_FixedArrayBase__length__SMI":          8,
		"v8dbg_class_FixedArray__data__uintptr_t":          16,
		"v8dbg_class_Map__instance_type__uint16_t":         12,
		"v8dbg_type_JSMap__JS_MAP_TYPE":                    2112,
	}
}

// image is a small library that exports ints.
func image(t testing.TB, ints map[string]int) []byte {
	t.Helper()
	var source strings.Builder
	for _, name := range slices.Sorted(maps.Keys(ints)) {
		fmt.Fprintf(&source, "int %s = %d;\n", name, ints[name])
	}
	path := filepath.Join(t.TempDir(), "v8.so")
	cmd := exec.Command("gcc", "-shared", "-fPIC", "-nostdlib", "-s", "-Wl,-z,max-page-size=64,-z,noseparate-code", "-o", path, "-x", "c", "-")
	cmd.Stdin = strings.NewReader(source.String())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

func library(t testing.TB, ints map[string]int) *elffile.File {
	t.Helper()
	data := image(t, ints)
	e, err := elffile.New(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return e
}

func TestLayoutOf(t *testing.T) {
	for name, tc := range map[string]struct {
		change map[string]int
		want   v8heap.Layout
	}{
		"Node.js 24": {nil, v8heap.Layout{Field: 0x20, MapType: 2112}},
		"Node.js 26": {map[string]int{major: 14, "v8dbg_type_JSMap__JS_MAP_TYPE": 2114}, v8heap.Layout{Field: 0x20, MapType: 2114}},
		"Node.js 23": {map[string]int{major: 12, minor: 9}, v8heap.Layout{Field: 0x20, MapType: 2112}},
		"Node.js 22": {map[string]int{major: 12, minor: 4, "v8dbg_type_JSMap__JS_MAP_TYPE": 2110}, v8heap.Layout{Field: 0x18, MapType: 2110}},
	} {
		t.Run(name, func(t *testing.T) {
			ints := node24()
			maps.Copy(ints, tc.change)
			layout, err := v8heap.LayoutOf(library(t, ints))
			require.NoError(t, err)
			require.Equal(t, tc.want, layout)
		})
	}
}

// What contradicts the table, or leaves a question open, is refused.
func TestLayoutOfRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		symbol string
		value  int
		says   string
	}{
		"other release":        {minor, 7, "version 13.7"},
		"later release":        {major, 99, "version 99.6"},
		"negative":             {major, -13, "version -13.6"},
		"pointer compression":  {"v8dbg_TaggedSize", 4, "v8dbg_TaggedSize is 4"},
		"small integers":       {"v8dbg_SmiShiftSize", 1, "v8dbg_SmiShiftSize"},
		"tag":                  {"v8dbg_HeapObjectTag", 2, "v8dbg_HeapObjectTag"},
		"objects":              {"v8dbg_class_JSObject__internal_fields__uintptr_t", 16, "internal_fields"},
		"maps":                 {"v8dbg_class_Map__instance_type__uint16_t", 8, "instance_type"},
		"impossible map type":  {"v8dbg_type_JSMap__JS_MAP_TYPE", 70000, "JS_MAP_TYPE"},
		"nothing of map types": {"v8dbg_type_JSMap__JS_MAP_TYPE", 0, "JS_MAP_TYPE"},
	} {
		t.Run(name, func(t *testing.T) {
			ints := node24()
			ints[tc.symbol] = tc.value
			if tc.value == 0 {
				delete(ints, tc.symbol)
			}
			_, err := v8heap.LayoutOf(library(t, ints))
			require.ErrorIs(t, err, v8heap.ErrUnknown)
			require.ErrorContains(t, err, tc.says)
		})
	}
	_, err := v8heap.LayoutOf(library(t, map[string]int{"x": 1, "v8dbg_TaggedSize": 8}))
	require.ErrorIs(t, err, v8heap.ErrNoV8)

	ints := node24()
	delete(ints, minor)
	_, err = v8heap.LayoutOf(library(t, ints))
	require.ErrorIs(t, err, v8heap.ErrUnknown)
}
