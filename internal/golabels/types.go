package golabels

import (
	"errors"
	"fmt"
	"math"
	"slices"
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

// visit looks for the types in a unit, behind its first entry. What one unit says is not
// changed by others.
func (t *types) visit(u *unit, r *cursor, l *links) error {
	l.start(u)
	var e entry
	var s structure
	labelMap := uint64(0)
	for r.rest() > 0 {
		at := r.offset()
		if u.entry(r, &e); r.bad {
			return r.damage("entry", at)
		}
		if labelMap == 0 && e.name.is("runtime/pprof.labelMap") {
			labelMap = at
		}
		var of *structure
		if e.tag == tagStructure && e.children {
			if u.structure(r, &s, e.size) {
				of = &s
			}
			if r.bad {
				return r.damage("members", at)
			}
		}
		if err := t.keep(&e, of); err != nil {
			return fmt.Errorf("%w at %#x", err, at)
		}
		k, ref := kindOf(&e, of)
		if err := l.add(k, at, ref); err != nil {
			return err
		}
	}
	if labelMap != 0 && t.form == formUnknown {
		t.form = l.formOf(labelMap)
	}
	return nil
}

// keep takes over the first types of the runtime that are structures.
func (t *types) keep(e *entry, s *structure) error {
	var to **structure
	switch {
	case e.tag != tagStructure || !e.children:
		return nil
	case e.name.is("runtime.g"):
		to = &t.g
	case e.name.is("runtime.m"):
		to = &t.m
	default:
		return nil
	}
	if s == nil {
		return fmt.Errorf("%w: members", errDamaged)
	}
	if *to == nil {
		*to = &structure{size: s.size, members: slices.Clone(s.members)}
	}
	return nil
}

// structure reads the members that follow a structure. It returns false where they are not
// as Go writes them, for as far as that is so.
func (u *unit) structure(r *cursor, s *structure, size uint64) bool {
	s.size, s.members = size, s.members[:0]
	var e entry
	for {
		u.entry(r, &e)
		switch {
		case r.bad || e.tag == 0:
			return !r.bad
		case e.children || len(s.members) == maxMembers:
			return false
		case e.tag == tagMember:
			s.members = append(s.members, e)
		}
	}
}

// offset returns where a member is that lies within the structure.
func (s *structure) offset(name string) (uint16, error) {
	for i := range s.members {
		e := &s.members[i]
		if !e.name.is(name) || !e.located {
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
