package unwind

import "github.com/customlabels/otelcol-customlabels/internal/record"

// Operations of DWARF expressions that are recognised (DWARF 5, section 7.7.1).
const (
	opDeref      = 0x06
	opAnd        = 0x1a
	opPlus       = 0x22
	opPlusUconst = 0x23
	opShl        = 0x24
	opGE         = 0x2a
	opLit0       = 0x30
	opBreg0      = 0x70
)

// base reads an operation that yields a register plus an offset.
func (c *cursor) base() (reg uint64, off int64) {
	op := c.u8()
	if op < opBreg0 || op >= opBreg0+32 {
		c.bad = true
		return 0, 0
	}
	return uint64(op - opBreg0), c.sleb()
}

// operations reads the given operations.
func (c *cursor) operations(ops ...uint8) bool {
	for _, op := range ops {
		if c.u8() != op {
			c.bad = true
		}
	}
	return !c.bad
}

// cfaExpression recognises the expressions that compute a CFA, which was another
// one before.
func (m *machine) cfaExpression(b []byte, before cfa) cfa {
	x, ok := m.dereference(b)
	if !ok {
		x, ok = m.pltExpression(b)
	}
	x.bad, x.reg, x.off = !ok, before.reg, before.off
	return x
}

// dereference recognises *(SP + off) + arg and *(FP + off) + arg: frames whose
// stack pointer was aligned or switched, the old one being kept on the stack.
func (m *machine) dereference(b []byte) (cfa, bool) {
	c := cursor{b: b}
	x := cfa{}
	reg, off := c.base()
	x.base = off
	switch reg {
	case m.sp:
		x.kind = record.CFADerefSP
	case m.fp:
		x.kind = record.CFADerefFP
	default:
		return x, false
	}
	if !c.operations(opDeref) {
		return x, false
	}
	if c.left() > 0 {
		c.operations(opPlusUconst)
		arg := c.uleb()
		x.arg = uint8(arg)
		if arg > 0xff {
			return x, false
		}
	}
	return x, !c.bad && c.left() == 0
}

// pltExpression recognises the CFA of the linker's PLT entries of 16 bytes,
// which push 8 bytes at N bytes into each: SP + off + ((IP & 15) >= N) << 3.
func (m *machine) pltExpression(b []byte) (cfa, bool) {
	c := cursor{b: b}
	reg, off := c.base()
	ip, zero := c.base()
	if reg != m.sp || ip != m.arch.ra || zero != 0 || !c.operations(opLit0+15, opAnd) {
		return cfa{}, false
	}
	n := c.u8() - opLit0
	if n > 15 || !c.operations(opGE, opLit0+3, opShl, opPlus) || c.left() != 0 {
		return cfa{}, false
	}
	return cfa{kind: record.CFAPLT, arg: n, base: off}, true
}

// addressExpression recognises the expressions of where a register was saved.
func (m *machine) addressExpression(b []byte) saved {
	c := cursor{b: b}
	reg, off := c.base()
	if c.bad || c.left() != 0 {
		return saved{how: otherwise}
	}
	switch reg {
	case m.sp:
		return offsetFrom(off, atSP)
	case m.fp:
		return offsetFrom(off, atFP)
	}
	return saved{how: otherwise}
}
