package golabels

import "bytes"

// mapHeader begins the name of the runtime's header of a map[string]string, to which Go's
// linker writes such a map as a pointer.
const mapHeader = "hash<string,string>"

// kindOf tells what matters of a type. s are the members of a structure, nil for another type.
func kindOf(e *entry, s *structure) (k kind, ref uint64) {
	switch e.tag {
	case tagTypedef:
		return kindTypedef, e.ref
	case tagPointer:
		return kindPointer, e.ref
	}
	switch {
	case s == nil:
		return kindNone, 0
	case e.name.is("string"):
		return kindString, 0
	case bytes.HasPrefix(e.name.bytes(), []byte(mapHeader)):
		return kindMap, 0
	case s.isLabel():
		return kindLabel, s.members[0].ref
	case s.isSlice():
		return kindSlice, s.members[0].ref
	case len(s.members) == 1 && s.members[0].isAt(0):
		return kindSingle, s.members[0].ref
	}
	return kindNone, 0
}

func (e *entry) isAt(offset uint64) bool { return e.located && e.location == offset }

// isSlice tells the structure of a slice: array at 0, len at 8.
func (s *structure) isSlice() bool {
	m := s.members
	return len(m) == 3 && m[0].name.is("array") && m[0].isAt(0) && m[1].name.is("len") && m[1].isAt(wordBytes)
}

// isLabel tells a structure of a key and a value of one type of the size of a string.
func (s *structure) isLabel() bool {
	m := s.members
	return len(m) == 2 && s.size == 4*wordBytes && m[0].isAt(0) && m[1].isAt(2*wordBytes) && m[0].ref == m[1].ref &&
		bytes.EqualFold(m[0].name.bytes(), []byte("key")) && bytes.EqualFold(m[1].name.bytes(), []byte("value"))
}

// formOf tells the form of the labels from the type at an offset in .debug_info, which is
// runtime/pprof.labelMap:
//
//	type labelMap struct{ LabelSet }    since Go 1.24, with
//	type LabelSet struct{ list []label }
//	type label struct{ key, value string }
//
//	type labelMap map[string]string     before
func (l *links) formOf(at uint64) form {
	k := l.at(l.offset(at))
	if k.kind() == kindPointer {
		if l.to(k).kind() == kindMap {
			return formMap
		}
		return formOther
	}
	// Down to the slice, which begins where the structure does.
	for range maxSteps {
		if k.kind() == kindSingle {
			k = l.to(k)
		}
	}
	if k.kind() == kindSlice && l.hasLabels(k) {
		return formSlice
	}
	return formOther
}

// hasLabels tells a slice of structures of two strings.
func (l *links) hasLabels(slice link) bool {
	pointer := l.to(slice)
	if pointer.kind() != kindPointer {
		return false
	}
	label := l.to(pointer)
	return label.kind() == kindLabel && l.to(label).kind() == kindString
}
