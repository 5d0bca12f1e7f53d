package unwind

// CFAKind says from what the CFA is computed: the value that the stack pointer
// has in the caller right after the return.
type CFAKind uint8

// Kinds of CFA. SP and FP are the stack pointer and the frame register (rbp,
// x29) of the frame, Arg and CFAOffset those of the Rule.
const (
	CFANone    CFAKind = iota // no information: use the frame pointer
	CFAEnd                    // outermost frame: the return address is undefined
	CFASP                     // SP + CFAOffset
	CFAFP                     // FP + CFAOffset
	CFAReg                    // register Arg (a DWARF number) + CFAOffset
	CFADerefSP                // *(SP + CFAOffset) + Arg
	CFADerefFP                // *(FP + CFAOffset) + Arg
	CFAPLT                    // SP + CFAOffset + ((IP & 15) >= Arg ? 8 : 0)
	CFASignal                 // the kernel's signal frame lies at SP
	CFASwitch                 // not known: the code came from another stack; the frame register leads there
)

// RAKind says where the return address is.
type RAKind uint8

// Kinds of return address.
const (
	RAOffset   RAKind = iota // at CFA + RAOffset
	RARegister               // in x30 (aarch64)
)

// FPKind says where the frame register of the caller is.
type FPKind uint8

// Kinds of frame register.
const (
	FPSame      FPKind = iota // not changed
	FPOffset                  // at CFA + FPOffset
	FPUndefined               // lost
	FPFrame                   // at FP + FPOffset: gcc's functions that realign the stack
)

// Rule tells how to get from a frame to its caller. It is the twin of struct
// unwind_rule in BPF. A field that its kind does not use is 0.
type Rule struct {
	CFA       CFAKind
	Arg       uint8
	RA        RAKind
	FP        FPKind
	CFAOffset int32
	RAOffset  int32
	FPOffset  int32
}

// Row says which rule holds from an address up to the next row. Low 16 bits:
// offset of the address in its block; high 16 bits: index into Table.Rules.
type Row uint32

func makeRow(offset uint64, rule uint16) Row { return Row(offset) | Row(rule)<<16 }

// Offset returns the offset of the row's first address in its block.
func (r Row) Offset() uint64 { return uint64(r & 0xffff) }

// Rule returns the index of the row's rule.
func (r Row) Rule() int { return int(r >> 16) }
