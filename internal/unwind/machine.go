package unwind

import "github.com/customlabels/otelcol-customlabels/internal/record"

// Call frame instructions (DWARF 5, section 7.24; LSB Core 5.0, section
// 10.5.2; DWARF for the Arm 64-bit Architecture, section 4.3). The first three
// have an operand in their low six bits.
const (
	cfaAdvanceLoc = 0x40
	cfaOffset     = 0x80
	cfaRestore    = 0xc0

	cfaNop                        = 0x00
	cfaSetLoc                     = 0x01
	cfaAdvanceLoc1                = 0x02
	cfaAdvanceLoc2                = 0x03
	cfaAdvanceLoc4                = 0x04
	cfaOffsetExtended             = 0x05
	cfaRestoreExtended            = 0x06
	cfaUndefined                  = 0x07
	cfaSameValue                  = 0x08
	cfaRegister                   = 0x09
	cfaRememberState              = 0x0a
	cfaRestoreState               = 0x0b
	cfaDefCFA                     = 0x0c
	cfaDefCFARegister             = 0x0d
	cfaDefCFAOffset               = 0x0e
	cfaDefCFAExpression           = 0x0f
	cfaExpression                 = 0x10
	cfaOffsetExtendedSF           = 0x11
	cfaDefCFASF                   = 0x12
	cfaDefCFAOffsetSF             = 0x13
	cfaValOffset                  = 0x14
	cfaValOffsetSF                = 0x15
	cfaValExpression              = 0x16
	cfaMIPSAdvanceLoc8            = 0x1d
	cfaAArch64SetRAState          = 0x2b
	cfaAArch64NegateRAStateWithPC = 0x2c
	cfaAArch64NegateRAState       = 0x2d // DW_CFA_GNU_window_save elsewhere
	cfaGNUArgsSize                = 0x2e
	cfaGNUNegativeOffsetExtended  = 0x2f
)

// machine executes call frame instructions.
type machine struct {
	arch
	ra         uint64 // column of the return address
	cie        *cie
	state      state
	initial    state
	remembered int
	stack      [maxRemembered]state
	trash      saved // rule of the columns that do not matter
}

// begin makes ready for the instructions of a CIE, or of an FDE of it.
func (m *machine) begin(x *cie) {
	m.cie, m.ra = x, x.ra
	m.state, m.initial, m.remembered = x.initial, x.initial, 0
}

// column returns the rule of a register.
func (m *machine) column(reg uint64) *saved {
	switch reg {
	case m.ra:
		return &m.state.ra
	case m.fp:
		return &m.state.fp
	case m.sp:
		return &m.state.sp
	}
	return &m.trash
}

// restore gives a register the rule that it has at the start of the function.
func (m *machine) restore(reg uint64) {
	switch reg {
	case m.ra:
		m.state.ra = m.initial.ra
	case m.fp:
		m.state.fp = m.initial.fp
	case m.sp:
		m.state.sp = m.initial.sp
	}
}

// run executes instructions that describe [start, end) and calls row with each
// range of addresses and the state that holds there. vaddr is the address of
// the cursor's first byte. It returns false when the instructions are cut short,
// go back or beyond end, or are not known; what was not described until then has
// no row. Without row, instructions that advance are an error.
func (m *machine) run(c *cursor, vaddr, start, end uint64, row func(from, to uint64) bool) bool {
	at := start
	for c.off < len(c.b) {
		op := c.u8()
		to := at
		switch op & 0xc0 {
		case cfaAdvanceLoc:
			to += uint64(op&0x3f) * m.cie.codeAlignment
		case cfaOffset:
			*m.column(uint64(op & 0x3f)) = m.factored(c.uleb())
			if c.bad {
				return false
			}
			continue
		case cfaRestore:
			m.restore(uint64(op & 0x3f))
			continue
		default:
			switch op {
			case cfaNop:
				continue
			case cfaSetLoc:
				to = c.pointer(m.cie.encoding, vaddr, 0)
			case cfaAdvanceLoc1:
				to += uint64(c.u8()) * m.cie.codeAlignment
			case cfaAdvanceLoc2:
				to += uint64(c.u16()) * m.cie.codeAlignment
			case cfaAdvanceLoc4:
				to += uint64(c.u32()) * m.cie.codeAlignment
			case cfaMIPSAdvanceLoc8:
				to += c.u64() * m.cie.codeAlignment
			default:
				if !m.define(op, c) || c.bad {
					return false
				}
				continue
			}
		}
		if c.bad || row == nil || to < at || to > end {
			return false
		}
		if to > at && !row(at, to) {
			return false
		}
		at = to
	}
	return row == nil || at == end || row(at, end)
}

// define executes an instruction that changes the state.
func (m *machine) define(op uint8, c *cursor) bool {
	s := &m.state
	switch op {
	case cfaDefCFA:
		s.cfa = cfa{kind: record.CFAReg, reg: c.uleb(), off: int64(c.uleb())}
	case cfaDefCFASF:
		s.cfa = cfa{kind: record.CFAReg, reg: c.uleb(), off: m.scaled(c.sleb())}
	case cfaDefCFARegister:
		s.cfa = cfa{kind: record.CFAReg, reg: c.uleb(), off: s.cfa.off}
	case cfaDefCFAOffset:
		s.cfa.off = int64(c.uleb())
	case cfaDefCFAOffsetSF:
		s.cfa.off = m.scaled(c.sleb())
	case cfaDefCFAExpression:
		s.cfa = m.cfaExpression(c.bytes(c.uleb()), s.cfa)
	case cfaOffsetExtended:
		*m.column(c.uleb()) = m.factored(c.uleb())
	case cfaOffsetExtendedSF:
		*m.column(c.uleb()) = offsetFrom(m.scaled(c.sleb()), atOffset)
	case cfaGNUNegativeOffsetExtended:
		reg := c.uleb()
		*m.column(reg) = m.factored(-c.uleb())
	case cfaRestoreExtended:
		m.restore(c.uleb())
	case cfaUndefined:
		*m.column(c.uleb()) = saved{how: undefined}
	case cfaSameValue:
		*m.column(c.uleb()) = saved{how: same}
	case cfaRegister:
		*m.column(c.uleb()) = saved{how: inRegister, reg: c.uleb()}
	case cfaExpression:
		*m.column(c.uleb()) = m.addressExpression(c.bytes(c.uleb()))
	case cfaValOffset, cfaValOffsetSF:
		*m.column(c.uleb()) = valueFrom(c.uleb())
	case cfaValExpression:
		*m.column(c.uleb()) = saved{how: otherwise}
		c.bytes(c.uleb())
	case cfaRememberState:
		if m.remembered == len(m.stack) {
			return false
		}
		m.stack[m.remembered] = *s
		m.remembered++
	case cfaRestoreState:
		if m.remembered == 0 {
			return false
		}
		m.remembered--
		*s = m.stack[m.remembered]
	case cfaGNUArgsSize:
		c.uleb()
	case cfaAArch64NegateRAState, cfaAArch64NegateRAStateWithPC:
		// Signed return addresses are told by their bits.
	case cfaAArch64SetRAState: // so are these
		c.uleb() // the state
		c.sleb() // the signing instruction's offset
	default:
		return false
	}
	return true
}

// scaled multiplies a factored offset. A product that overflows does not fit
// into a Rule: it is cut to a value that does not, either.
func (m *machine) scaled(v int64) int64 {
	p := v * m.cie.dataAlignment
	if v != 0 && (p/v != m.cie.dataAlignment || v == -1 && m.cie.dataAlignment == -1<<63) {
		return 1 << 62
	}
	return p
}

func (m *machine) factored(v uint64) saved { return offsetFrom(m.scaled(int64(v)), atOffset) }
