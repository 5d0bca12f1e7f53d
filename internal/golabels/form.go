package golabels

import "strings"

// at returns the entry at an offset in .debug_info, and its members if it is a
// structure.
func (u *unit) at64(ref uint64) (e entry, s *structure, ok bool) {
	start := u.at + lengthBytes
	if ref < start+uint64(u.headerBytes) || ref-start >= uint64(len(u.data)) {
		return entry{}, nil, false
	}
	r := cursor{b: u.data, at: int(ref - start)}
	u.entry(&r, &e)
	if !r.bad && e.tag == tagStructure && e.children {
		s = u.structure(&r, e.size)
	}
	return e, s, !r.bad && e.tag != 0
}

// resolve follows names of types to the type itself.
func (u *unit) resolve(ref uint64) (e entry, s *structure, ok bool) {
	for range maxSteps {
		if e, s, ok = u.at64(ref); !ok || e.tag != tagTypedef {
			return e, s, ok
		}
		ref = e.ref
	}
	return entry{}, nil, false
}

// formOf tells the form of the labels from runtime/pprof.labelMap:
//
//	type labelMap struct{ LabelSet }    since Go 1.24, with
//	type LabelSet struct{ list []label }
//	type label struct{ key, value string }
//
//	type labelMap map[string]string     before
func (u *unit) formOf(ref uint64) form {
	e, s, ok := u.resolve(ref)
	if !ok {
		return formOther
	}
	if e.tag == tagPointer {
		// Go's linker writes a map as a pointer to the runtime's header for it.
		if head, _, ok := u.resolve(e.ref); ok && strings.HasPrefix(head.name, "hash<string,string>") {
			return formMap
		}
		return formOther
	}
	// Down to the slice, which begins where the structure does.
	for range maxSteps {
		if s == nil || len(s.members) == 0 || s.members[0].location != 0 || !s.members[0].located {
			return formOther
		}
		if s.members[0].name == "array" && u.isLabelSlice(s) {
			return formSlice
		}
		if len(s.members) != 1 {
			return formOther
		}
		if _, s, ok = u.resolve(s.members[0].ref); !ok {
			return formOther
		}
	}
	return formOther
}

// isLabelSlice reports whether a structure is that of a slice of structures of two
// strings: array at 0, len at 8.
func (u *unit) isLabelSlice(s *structure) bool {
	if len(s.members) != 3 || s.members[1].name != "len" || s.members[1].location != wordBytes {
		return false
	}
	pointer, _, ok := u.resolve(s.members[0].ref)
	if !ok || pointer.tag != tagPointer {
		return false
	}
	_, label, ok := u.resolve(pointer.ref)
	if !ok || label == nil || label.size != 4*wordBytes || len(label.members) != 2 {
		return false
	}
	for i, member := range label.members {
		if !member.located || member.location != uint64(2*wordBytes*i) || !strings.EqualFold(member.name, [2]string{"key", "value"}[i]) {
			return false
		}
		if text, _, ok := u.resolve(member.ref); !ok || text.name != "string" {
			return false
		}
	}
	return true
}
