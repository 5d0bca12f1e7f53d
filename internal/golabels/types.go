package golabels

import (
	"errors"
	"fmt"
	"math"
)

// maxMembers of one structure are read; runtime.m has about 90.
const maxMembers = 512

// maxSteps bounds the references that lead from one type to the next.
const maxSteps = 8

var (
	errForm   = errors.New("labels of an unknown form")
	errNoForm = errors.New("no types of labels in the debug information")
)

type form uint8

const (
	formUnknown form = iota // the program has no such type
	formSlice               // struct{ list []struct{ key, value string } }
	formMap                 // map[string]string
	formOther
)

// structure is a structure of which members are known.
type structure struct {
	size    uint64
	members []entry
}

// types are those that were found.
type types struct {
	g, m *structure
	form form
}

func newTypes() *types { return &types{} }

func (t *types) complete() bool { return t.g != nil && t.m != nil && t.form != formUnknown }

// visit looks for the types in a unit. What one unit says is not changed by others.
func (t *types) visit(u *unit) error {
	r := cursor{b: u.data, at: u.headerBytes}
	var e entry
	var labelMap uint64
	labelStruct := false
	for r.at < len(r.b) {
		at := r.at
		if u.entry(&r, &e); r.bad {
			return fmt.Errorf("%w: entry at %#x", errDamaged, u.at+uint64(lengthBytes+at))
		}
		switch e.name {
		case "runtime.g", "runtime.m":
			if e.tag != tagStructure || !e.children {
				continue
			}
			s := u.structure(&r, e.size)
			if e.name == "runtime.g" && t.g == nil {
				t.g = s
			} else if e.name == "runtime.m" && t.m == nil {
				t.m = s
			}
		case "runtime/pprof.labelMap":
			labelMap, labelStruct = u.at+uint64(lengthBytes+at), labelStruct || e.tag == tagStructure
			if e.tag == tagTypedef && labelStruct {
				continue // of the structure
			}
			if t.form == formUnknown {
				t.form = u.formOf(labelMap)
			}
		}
		if r.bad {
			return fmt.Errorf("%w: members at %#x", errDamaged, u.at+uint64(lengthBytes+at))
		}
	}
	return nil
}

// structure reads the members that follow a structure.
func (u *unit) structure(r *cursor, size uint64) *structure {
	s := &structure{size: size}
	var e entry
	for {
		u.entry(r, &e)
		if r.bad || e.tag == 0 {
			return s
		}
		if e.children || len(s.members) == maxMembers {
			r.bad = true // not as Go writes it
			return s
		}
		if e.tag == tagMember {
			s.members = append(s.members, e)
		}
	}
}

// offset returns where a member is that lies within the structure.
func (s *structure) offset(name string) (uint16, error) {
	for i := range s.members {
		e := &s.members[i]
		if e.name != name || !e.located {
			continue
		}
		if e.location > math.MaxUint16 || e.location+wordBytes > s.size {
			return 0, fmt.Errorf("%w: offset %d of %s", errDamaged, e.location, name)
		}
		return uint16(e.location), nil
	}
	return 0, fmt.Errorf("%w: no member %s", errNoTypes, name)
}

// layout returns the offsets that the types have.
func (t *types) layout() (l Layout, err error) {
	if t.form == formOther {
		return Layout{}, errForm
	}
	l.Map = t.form == formMap
	for _, m := range []struct {
		to   *uint16
		of   *structure
		name string
	}{
		{&l.GM, t.g, "m"}, {&l.GLabels, t.g, "labels"}, {&l.MProcID, t.m, "procid"}, {&l.MCurG, t.m, "curg"},
	} {
		if *m.to, err = m.of.offset(m.name); err != nil {
			return Layout{}, err
		}
	}
	return l, nil
}
