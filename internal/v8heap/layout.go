package v8heap

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// Errors of LayoutOf.
var (
	// ErrNoV8 says that a file has no V8.
	ErrNoV8 = errors.New("no V8")

	// ErrUnknown says that a file has a V8 that is not known, or is not built as
	// those that are.
	ErrUnknown = errors.New("unsupported V8")
)

// Layout is what differs between the builds of V8 that are known.
type Layout struct {
	// Field is the offset of the first internal field of an object that the
	// embedder's native code made, in bytes.
	Field uint8
	// MapType is the instance type of a JavaScript Map.
	MapType uint16
}

// Mangled names of v8::internal::Version::major_ and minor_, which are ints.
const (
	majorSymbol = "_ZN2v88internal7Version6major_E"
	minorSymbol = "_ZN2v88internal7Version6minor_E"
)

// mapTypeSymbol tells JS_MAP_TYPE, which changes with every release of V8.
const mapTypeSymbol = "v8dbg_type_JSMap__JS_MAP_TYPE"

type version struct{ major, minor int32 }

// fieldOf returns Layout.Field of a release. From 12.9 on, or somewhat earlier,
// such objects begin with a slot for cppgc. Observed in Node.js 22 (12.4), 23
// (12.9), 24 (13.6), 25 (14.1) and 26 (14.6).
func fieldOf(v version) (field uint8, ok bool) {
	switch v {
	case version{12, 4}:
		return 0x18, true
	case version{12, 9}, version{13, 6}, version{14, 1}, version{14, 6}:
		return 0x20, true
	}
	return 0, false
}

// LayoutOf returns the layout of the V8 in a file. Errors are ErrNoV8 and
// ErrUnknown, or say why the file cannot be read.
func LayoutOf(e *elffile.File) (Layout, error) {
	major, ok, err := readInt(e, majorSymbol)
	if err != nil {
		return Layout{}, err
	}
	if !ok {
		return Layout{}, ErrNoV8
	}
	minor, ok, err := readInt(e, minorSymbol)
	if err != nil {
		return Layout{}, err
	}
	v := version{major, minor}
	field, known := fieldOf(v)
	if !ok || !known {
		return Layout{}, fmt.Errorf("%w: version %d.%d", ErrUnknown, v.major, v.minor)
	}
	if err := checkMetadata(e); err != nil {
		return Layout{}, err
	}
	mapType, ok, err := readInt(e, mapTypeSymbol)
	switch {
	case err != nil:
		return Layout{}, err
	case !ok || mapType <= 0 || mapType > 1<<16-1:
		return Layout{}, fmt.Errorf("%w: no %s", ErrUnknown, mapTypeSymbol)
	}
	return Layout{Field: field, MapType: uint16(mapType)}, nil
}

// checkMetadata makes sure that a build has what the readers take for granted:
// no pointer compression, pointers with the tag 1, small integers in the upper
// half of a word.
func checkMetadata(e *elffile.File) error {
	for _, c := range []struct {
		symbol string
		want   int32
	}{
		{"v8dbg_TaggedSize", 8},
		{"v8dbg_HeapObjectTag", 1},
		{"v8dbg_SmiShiftSize", 31},
		{"v8dbg_class_JSObject__internal_fields__uintptr_t", 0x18},
		{"v8dbg_class_FixedArrayBase__length__SMI", 8},
		{"v8dbg_class_FixedArray__data__uintptr_t", 16},
		{"v8dbg_class_Map__instance_type__uint16_t", 12},
	} {
		got, ok, err := readInt(e, c.symbol)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("%w: no %s", ErrUnknown, c.symbol)
		case got != c.want:
			return fmt.Errorf("%w: %s is %d, not %d", ErrUnknown, c.symbol, got, c.want)
		}
	}
	return nil
}

// readInt returns the initial value of an exported int.
func readInt(e *elffile.File, name string) (v int32, ok bool, err error) {
	sym, ok, err := e.DynamicSymbol(name)
	if err != nil || !ok {
		return 0, false, err
	}
	var b [4]byte
	if err := e.ReadVaddr(b[:], sym.Value); err != nil {
		return 0, false, fmt.Errorf("read %s: %w", name, err)
	}
	return int32(binary.LittleEndian.Uint32(b[:])), true, nil
}
