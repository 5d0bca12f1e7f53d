package codeframes

import "github.com/customlabels/otelcol-customlabels/internal/record"

// realigned is what is known in a function of x86-64 whose variables have an alignment that
// the stack does not have. gcc puts the CFA into a register, the argument pointer, aligns the
// stack pointer, which is not known from then on, pushes the return address again and the
// frame register, and has the frame register point there. Below it, it saves the argument
// pointer.
type realigned struct {
	known   bool // the argument pointer is CFA + ap
	pushed  bool // the caller's frame register has just been pushed
	spKnown bool // the stack pointer is FP + sp; state.fpWhere is atFP
	saved   bool // the argument pointer was CFA + inSlot when it was saved at FP + slot
	ap, sp  int32
	slot    int32
	inSlot  int32
}

// loaded notes that the argument pointer is loaded from an offset from the frame register.
func (a *realigned) loaded(known bool, at int32) {
	a.known = known && a.saved && a.slot == at
	a.ap = a.inSlot
}

// normal clears what does not count; inFrame: the frame register points to the caller's.
func (a realigned) normal(inFrame bool) realigned {
	if !inFrame {
		a.spKnown, a.saved = false, false
	}
	if !a.known {
		a.ap = 0
	}
	if !a.spKnown || a.sp > maxFrame || a.sp < -maxFrame {
		a.spKnown, a.sp = false, 0
	}
	if !a.saved {
		a.slot, a.inSlot = 0, 0
	}
	return a
}

func (a *realigned) meet(o *realigned) realigned {
	r := *a
	r.known = a.known && o.known && a.ap == o.ap
	r.pushed = a.pushed && o.pushed
	r.spKnown = a.spKnown && o.spKnown && a.sp == o.sp
	r.saved = a.saved && o.saved && a.slot == o.slot && a.inSlot == o.inSlot
	return r
}

// rule says where the CFA is. It returns false if that is not known.
func (a *realigned) rule(r *record.UnwindRule) bool {
	const dwarfAP = 10
	switch {
	case a.saved && a.inSlot <= 0 && a.inSlot > -256:
		r.CFA, r.CFAOffset, r.Arg = record.CFADerefFP, a.slot, uint8(-a.inSlot)
	case a.known:
		r.CFA, r.CFAOffset, r.Arg = record.CFAReg, -a.ap, dwarfAP
	default:
		return false
	}
	return true
}
