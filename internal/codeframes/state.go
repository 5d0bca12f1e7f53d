package codeframes

import "github.com/customlabels/otelcol-customlabels/internal/record"

// where tells where a register's value at the entry of the function is.
type where uint8

const (
	inPlace where = iota // in the register
	saved                // in the frame, at an offset from the CFA
	atFP                 // where the frame register points
	lost
)

// maxFrame bounds how far a function moves the stack pointer.
const maxFrame = 64 << 20

// state is what is known before an instruction. Offsets are from the CFA. The zero state
// means that the instruction was not reached.
type state struct {
	reached   bool
	outermost bool // nothing has called this code
	spKnown   bool
	fpKnown   bool  // the frame register points into the frame, at fp
	fpWhere   where // the caller's frame register; saved: also if the register has it, too
	raWhere   where // the return address
	sp, fp    int32
	fpSlot    int32 // valid if saved
	raSlot    int32 // the same
	realigned realigned
}

// machine is what differs between architectures.
type machine struct {
	decode decoder
	align  uint64
	entry  state // at the first instruction of a function
	link   bool  // calls put the return address into a register
	// kept are the registers that a function finds with values of its caller's, of which it
	// can make no use.
	kept registers
}

func (m *machine) apply(s state, i *instruction) state {
	a := &s.realigned
	if i.flow == flowCall || i.flow == flowCallIndirect || i.writes>>x86AP&1 != 0 && !i.hasAP {
		a.known = false
	}
	switch i.effect {
	case effectMove:
		s = m.move(s, i)
	case effectLoseSP:
		s.spKnown, a.spKnown = false, false
	case effectLoseFP:
		s.loseFP()
	case effectLoseBoth:
		s.spKnown, a.spKnown = false, false
		s.loseFP()
	case effectLoseRA:
		if s.raWhere == inPlace {
			s.raWhere = lost
		}
	case effectFPFromSP:
		pushed := a.pushed && i.n == 0 && s.fpWhere == inPlace
		s.loseFP()
		if s.spKnown {
			s.fpKnown, s.fp = true, s.sp+i.n
		} else if pushed {
			s.fpWhere, a.spKnown, a.sp = atFP, true, 0
		}
	case effectSPFromFP:
		s.sp, s.spKnown = s.fp+i.n, s.fpKnown
		a.sp, a.spKnown = i.n, s.fpWhere == atFP
	case effectAPFromSP:
		a.known, a.ap = s.spKnown, s.sp+i.n
	case effectSPFromAP:
		s.spKnown, s.sp = a.known, a.ap+i.n
	case effectAPFromFrame:
		a.loaded(s.fpWhere == atFP, i.n)
	case effectLeave:
		s.sp, s.spKnown = s.fp, s.fpKnown
		a.sp, a.spKnown = 0, s.fpWhere == atFP
		s = m.move(s, &instruction{load: true, hasFP: true, post: 8})
	case effectZeroFP:
		if s.fpWhere == inPlace {
			s.outermost = true
		}
		s.loseFP()
	}
	if i.flow == flowCall || i.flow == flowCallIndirect {
		if m.link && s.raWhere == inPlace {
			s.raWhere = lost
		}
	}
	return s.normal(m)
}

func (s *state) loseFP() {
	s.fpKnown, s.fp = false, 0
	if s.fpWhere == inPlace || s.fpWhere == atFP {
		s.fpWhere = lost
	}
}

func (m *machine) move(s state, i *instruction) state {
	a := &s.realigned
	s.sp += i.pre
	a.sp += i.pre
	a.pushed = !s.spKnown && a.known && i.store && i.hasFP
	if i.hasAP && i.store && a.known && a.spKnown && s.fpWhere == atFP {
		a.saved, a.slot, a.inSlot = true, a.sp, a.ap
	}
	if i.hasAP && i.load {
		a.loaded(a.spKnown && s.fpWhere == atFP, a.sp)
	}
	if i.store && s.spKnown {
		if i.hasFP && s.fpWhere == inPlace {
			s.fpWhere, s.fpSlot = saved, s.sp+i.fpAt
		}
		if i.hasRA && s.raWhere == inPlace {
			s.raWhere, s.raSlot = saved, s.sp+i.raAt
		}
	}
	if i.load && i.hasFP {
		s.fpKnown = false
		switch {
		case s.spKnown && s.fpWhere == saved && s.fpSlot == s.sp+i.fpAt, a.spKnown && s.fpWhere == atFP && a.sp+i.fpAt == 0:
			s.fpWhere = inPlace
		case s.fpWhere != saved:
			s.fpWhere = lost
		}
	}
	if i.load && i.hasRA {
		if s.spKnown && s.raWhere == saved && s.raSlot == s.sp+i.raAt {
			s.raWhere = inPlace
		} else {
			s.raWhere = lost
		}
	}
	s.sp += i.post
	a.sp += i.post
	return s
}

// normal clears what does not count, so that states that say the same are equal. The stack
// above the frame is the caller's: code that goes there plays with its return address.
func (s state) normal(m *machine) state {
	if s.outermost {
		return state{reached: true, outermost: true}
	}
	if s.spKnown && (s.sp > m.entry.sp || s.sp < -maxFrame) {
		s.spKnown = false
		s.raWhere = lost
	}
	if s.fpKnown && (s.fp > 0 || s.fp < -maxFrame) {
		s.fpKnown = false
	}
	if !s.spKnown {
		s.sp = 0
	}
	if !s.fpKnown {
		s.fp = 0
	}
	if s.fpWhere != saved {
		s.fpSlot = 0
	}
	if s.raWhere != saved {
		s.raSlot = 0
	}
	s.realigned = s.realigned.normal(s.fpWhere == atFP)
	return s
}

// meet returns what both states say.
func (s state) meet(o state, m *machine) state {
	if s.outermost != o.outermost {
		return state{reached: true, fpWhere: lost, raWhere: lost}
	}
	s.spKnown = s.spKnown && o.spKnown && s.sp == o.sp
	s.fpKnown = s.fpKnown && o.fpKnown && s.fp == o.fp
	if s.fpWhere != o.fpWhere || s.fpSlot != o.fpSlot {
		s.fpWhere = lost
	}
	if s.raWhere != o.raWhere || s.raSlot != o.raSlot {
		s.raWhere = lost
	}
	s.realigned = s.realigned.meet(&o.realigned)
	return s.normal(m)
}

// returns reports whether a function may return here. known: enough is known to say.
func (s state) returns(m *machine) (right, known bool) {
	if s.outermost || !s.spKnown {
		return false, s.outermost
	}
	return s.sp == m.entry.sp && s.fpWhere == inPlace && s.raWhere == m.entry.raWhere && s.raSlot == m.entry.raSlot, true
}

// rule says how to get to the caller; the zero one if that is not known.
func (s state) rule() record.UnwindRule {
	r := record.UnwindRule{}
	switch {
	case !s.reached || !s.outermost && s.raWhere == lost:
		return r
	case s.outermost:
		return record.UnwindRule{CFA: record.CFAEnd}
	case s.spKnown:
		r.CFA, r.CFAOffset = record.CFASP, -s.sp
	case s.fpKnown:
		r.CFA, r.CFAOffset = record.CFAFP, -s.fp
	default:
		if !s.realigned.rule(&r) {
			return record.UnwindRule{}
		}
	}
	if s.raWhere == saved {
		r.RAOffset = s.raSlot
	} else {
		r.RA = record.RARegister
	}
	switch s.fpWhere {
	case saved:
		r.FP, r.FPOffset = record.FPOffset, s.fpSlot
	case atFP:
		r.FP = record.FPFrame
	case lost:
		r.FP = record.FPUndefined
	}
	return r
}
