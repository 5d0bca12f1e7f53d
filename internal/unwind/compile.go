package unwind

import (
	"debug/elf"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Offsets from the stack pointer in a signal trampoline on x86-64: the handler
// has returned, so struct ucontext of struct rt_sigframe lies at SP
// (arch/x86/include/asm/sigframe.h; struct sigcontext in
// arch/x86/include/uapi/asm/sigcontext.h begins 40 bytes into it).
const (
	signalFP = 120
	signalSP = 160
	signalIP = 168
)

// compile turns the machine's state into a rule. The reason is why that is not
// all that the state says.
func (m *machine) compile(signal bool) (record.UnwindRule, Reason) {
	s := &m.state
	if s.ra.how == undefined {
		return record.UnwindRule{CFA: record.CFAEnd}, ReasonNone
	}
	if signal {
		return m.compileSignal()
	}
	r, reason := m.compileCFA()
	if reason != ReasonNone {
		return record.UnwindRule{}, reason
	}
	switch {
	case s.ra.how == atOffset:
		r.RAOffset = s.ra.off
	case s.ra.how == tooFar:
		return record.UnwindRule{}, ReasonOffset
	case m.machine == elf.EM_AARCH64 && m.ra == m.arch.ra && (s.ra.how == unspecified || s.ra.how == same):
		r.RA = record.RARegister
	default:
		return record.UnwindRule{}, ReasonReturnAddress
	}
	switch s.sp.how {
	case unspecified, same, undefined, isCFA:
	default:
		return record.UnwindRule{}, ReasonStackPointer
	}
	switch s.fp.how {
	case unspecified, same:
	case atOffset:
		r.FP, r.FPOffset = record.FPOffset, s.fp.off
	case atFP:
		r.FP, r.FPOffset = record.FPFrame, s.fp.off
	case undefined:
		r.FP = record.FPUndefined
	default:
		r.FP, reason = record.FPUndefined, ReasonFrameRegister
	}
	return r, reason
}

func (m *machine) compileCFA() (record.UnwindRule, Reason) {
	x := &m.state.cfa
	if x.bad || x.kind == record.CFANone {
		return record.UnwindRule{}, ReasonCFA
	}
	off := x.base
	if x.kind == record.CFAReg {
		off = x.off
	}
	if !fits(off) {
		return record.UnwindRule{}, ReasonOffset
	}
	r := record.UnwindRule{CFA: x.kind, Arg: x.arg, CFAOffset: int32(off)}
	if x.kind == record.CFAReg {
		switch {
		case x.reg == m.sp:
			r.CFA = record.CFASP
		case x.reg == m.fp:
			r.CFA = record.CFAFP
		case x.reg < m.registers:
			r.Arg = uint8(x.reg)
		default:
			return record.UnwindRule{}, ReasonCFA
		}
	}
	return r, ReasonNone
}

// compileSignal accepts a signal frame if it is where the kernel puts it. On
// aarch64 no rule of a register tells: FDEs are accepted by their code, see
// builder.signalFDE.
func (m *machine) compileSignal() (record.UnwindRule, Reason) {
	s := &m.state
	at := func(x saved, off int32) bool { return x.how == atSP && x.off == off }
	sp := at(s.sp, signalSP) || s.cfa.kind == record.CFADerefSP && !s.cfa.bad && s.cfa.base == signalSP && s.cfa.arg == 0 && s.sp.how == unspecified
	if m.machine == elf.EM_AARCH64 || !sp || !at(s.ra, signalIP) || !at(s.fp, signalFP) {
		return record.UnwindRule{}, ReasonSignal
	}
	return record.UnwindRule{CFA: record.CFASignal}, ReasonNone
}
