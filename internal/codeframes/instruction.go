package codeframes

// flow is where an instruction goes on.
type flow uint8

const (
	flowNext         flow = iota
	flowJump              // to target
	flowBranch            // to target, or on
	flowCall              // of target, then on
	flowCallIndirect      // then on
	flowJumpIndirect
	flowReturn
	flowStop // nowhere: traps
)

// effect is what an instruction does to what is followed.
type effect uint8

const (
	effectMove        effect = iota // as the fields of instruction say
	effectLoseSP                    // the stack pointer becomes something else
	effectLoseFP                    // the frame register does
	effectLoseBoth                  // both
	effectLoseRA                    // the link register does
	effectFPFromSP                  // the frame register becomes SP + n
	effectSPFromFP                  // the stack pointer becomes FP + n
	effectLeave                     // likewise with n = 0, then the frame register is popped
	effectZeroFP                    // the frame register becomes 0
	effectAPFromSP                  // the argument pointer becomes SP + n
	effectSPFromAP                  // the stack pointer becomes AP + n
	effectAPFromFrame               // the argument pointer is loaded from FP + n
	effectOddReturn                 // returns, and does more than that
)

// instruction is one of either architecture, as far as it matters.
type instruction struct {
	size   int // in bytes; 0: not known
	flow   flow
	effect effect
	n      int32
	// padding fills the space between functions.
	padding bool

	// Of effectMove: the stack pointer moves by pre, then registers are stored or loaded at
	// offsets from it, then it moves by post.
	pre, post    int32
	store, load  bool
	hasFP, hasRA bool
	hasAP        bool // pushed or popped
	fpAt, raAt   int32

	// What tells whether a function can begin here.
	uses    registers // read, or used in addresses
	writes  registers
	stack   bool // stackAt is used, an offset from the stack pointer
	stackAt int32

	target  uint64 // of flowJump, flowBranch and flowCall
	address uint64 // that is put into a register; 0: none
}

// registers is a set of general registers, by their numbers.
type registers uint32

func (r *registers) add(reg int) {
	if reg >= 0 {
		*r |= 1 << reg
	}
}

// decoder decodes the instruction at an offset of code, which is at an address.
type decoder func(code []byte, at int, vaddr uint64) instruction

// counts reports whether it changes what is followed.
func (i *instruction) counts() bool {
	return i.effect != effectMove || i.pre|i.post != 0 || i.load || i.store || i.hasAP || i.flow == flowCall || i.flow == flowCallIndirect
}

func (i *instruction) ends() bool {
	switch i.flow {
	case flowJump, flowJumpIndirect, flowReturn, flowStop:
		return true
	}
	return false
}
