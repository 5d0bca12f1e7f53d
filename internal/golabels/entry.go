package golabels

// Of DWARF 2 to 5.
const (
	tagMember    = 0x0d
	tagPointer   = 0x0f
	tagStructure = 0x13
	tagTypedef   = 0x16

	attrName     = 0x03
	attrByteSize = 0x0b
	attrLocation = 0x38 // DW_AT_data_member_location
	attrType     = 0x49

	formString        = 0x08
	formExprloc       = 0x18
	formImplicitConst = 0x21

	opPlusUconst = 0x23

	// maxExpressionBytes is more than a member's location takes: an operation and a number.
	maxExpressionBytes = 16
)

// fixedForms are the sizes of forms that say nothing to us, or are numbers. -1: an
// address.
var fixedForms = map[uint64]int{ //nolint:gochecknoglobals // never written
	0x01: -1,
	0x05: 2, 0x06: 4, 0x07: 8, 0x0b: 1, // data
	0x0c: 1, 0x19: 0, // flag
	0x0e: 4, 0x17: 4, 0x1d: 4, 0x1f: 4, // offsets in other sections
	0x10: 4, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x20: 8, 0x1c: 4, // references
	0x1e: 16,
	0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, // strings by index
	0x29: 1, 0x2a: 2, 0x2b: 3, 0x2c: 4, // addresses by index
}

const (
	formBlock2   = 0x03
	formBlock4   = 0x04
	formBlock    = 0x09
	formBlock1   = 0x0a
	formSdata    = 0x0d
	formUdata    = 0x0f
	formRefAddr  = 0x10
	formRefUdata = 0x15
	formStrx     = 0x1a
	formAddrx    = 0x1b
	formLoclistx = 0x22
	formRnglistx = 0x23
)

// entry is what matters of one entry of .debug_info.
type entry struct {
	tag      uint64 // 0: it ends a list of children
	children bool
	name     text
	size     uint64
	location uint64
	located  bool
	ref      uint64 // of the type: offset in .debug_info; 0: none
}

// entry reads the entry at the cursor.
func (u *unit) entry(r *cursor, e *entry) {
	*e = entry{}
	code := r.uleb()
	if code == 0 || r.bad {
		return
	}
	a, ok := u.table.abbrevs[code]
	if !ok {
		r.bad = true
		return
	}
	e.tag, e.children = a.tag, a.children
	attributes := u.table.attributes[a.from:a.to]
	for i := range attributes {
		at := &attributes[i]
		switch {
		case at.name == attrName && at.form == formString:
			r.text(&e.name)
		case at.form == formImplicitConst:
			e.number(at.name, uint64(at.constant))
		case at.name == attrLocation && (at.form == formExprloc || at.form == formBlock1):
			e.expression(r, blockBytes(r, at.form))
		default:
			v := u.value(r, at.form)
			if at.name == attrType && at.form != formRefAddr {
				v += u.at // references within the unit
			}
			e.number(at.name, v)
		}
	}
}

// number takes over an attribute that is a number.
func (e *entry) number(name, v uint64) {
	switch name {
	case attrByteSize:
		e.size = v
	case attrLocation:
		e.location, e.located = v, true
	case attrType:
		e.ref = v
	}
}

// expression reads a member's location in the form of older versions.
func (e *entry) expression(r *cursor, n uint64) {
	if n > maxExpressionBytes {
		r.skip(n)
		return
	}
	b := r.take(int(n))
	if len(b) == 0 || b[0] != opPlusUconst {
		return
	}
	in := cursor{b: b, at: 1}
	if v := in.uleb(); !in.bad && in.at == len(b) {
		e.location, e.located = v, true
	}
}

func blockBytes(r *cursor, form uint64) uint64 {
	switch form {
	case formBlock1:
		return r.uint(1)
	case formBlock2:
		return r.uint(2)
	case formBlock4:
		return r.uint(4)
	}
	return r.uleb()
}

// value reads, or skips, what a form has.
func (u *unit) value(r *cursor, form uint64) uint64 {
	switch form {
	case formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx:
		return r.uleb()
	case formSdata:
		return uint64(r.sleb())
	case formString:
		var passed text
		r.text(&passed)
		return 0
	case formBlock, formBlock1, formBlock2, formBlock4, formExprloc:
		r.skip(blockBytes(r, form))
		return 0
	}
	n, ok := fixedForms[form]
	switch {
	case !ok:
		r.bad = true // its length is not known
		return 0
	case n < 0:
		n = u.addrBytes
	case n > 8:
		r.skip(uint64(n))
		return 0
	}
	return r.uint(n)
}
