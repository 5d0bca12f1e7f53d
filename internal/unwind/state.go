package unwind

import "github.com/customlabels/otelcol-customlabels/internal/record"

// how tells where a value of the caller is.
type how uint8

const (
	unspecified how = iota
	undefined
	same
	atOffset   // at CFA + off
	inRegister // in register reg
	atSP       // at SP + off
	atFP       // at FP + off
	tooFar     // at an offset that does not fit
	isCFA      // the CFA itself
	otherwise  // an expression that is not known, or another value computed from the CFA
)

// saved is the rule of one register.
type saved struct {
	how how
	off int32
	reg uint64
}

// cfa is the rule of the CFA. An expression leaves the register and the offset
// as they were: handwritten descriptions go back to them.
type cfa struct {
	kind record.CFAKind // CFANone at first, CFAReg for any register, or that of the expression
	bad  bool           // an expression that is not known
	arg  uint8          // of the expression
	base int64          // its offset
	reg  uint64
	off  int64
}

// state is one row of the table that call frame instructions describe, of the
// columns that matter.
type state struct {
	cfa        cfa
	ra, fp, sp saved
}

// fits reports whether v can be an offset of a Rule.
func fits(v int64) bool { return int64(int32(v)) == v }

func offsetFrom(v int64, h how) saved {
	if !fits(v) {
		return saved{how: tooFar}
	}
	return saved{how: h, off: int32(v)}
}

// valueFrom is the rule of a register whose value is the CFA + offset.
func valueFrom(offset uint64) saved {
	if offset == 0 {
		return saved{how: isCFA}
	}
	return saved{how: otherwise}
}
