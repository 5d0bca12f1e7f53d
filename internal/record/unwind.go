package record

// CFAKind says from what the CFA is computed, the value that the stack pointer has in the
// caller right after the return: enum cfa_kind.
type CFAKind uint8

// Kinds of CFA. SP and FP are the stack pointer and the frame register (rbp,
// x29) of the frame, Arg and CFAOffset those of the UnwindRule.
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
	// CFASwitch: not known, the code came from another stack, to which the frame register leads. One
	// that is 0 ends the stack; where Arg is not 0, the code may have cleared it, and the stack is cut.
	CFASwitch
)

// RAKind says where the return address is: enum ra_kind.
type RAKind uint8

// Kinds of return address.
const (
	RAOffset   RAKind = iota // at CFA + RAOffset
	RARegister               // in x30 (aarch64)
	// RAInterrupted is or'ed to the others: it is the address of an instruction that was
	// interrupted, at which a call was made to look as if it came from there. On aarch64 its
	// x30 is at CFA - 16.
	RAInterrupted
)

// FPKind says where the frame register of the caller is: enum fp_kind.
type FPKind uint8

// Kinds of frame register.
const (
	FPSame      FPKind = iota // not changed
	FPOffset                  // at CFA + FPOffset
	FPUndefined               // lost
	FPFrame                   // at FP + FPOffset: gcc's functions that realign the stack
)

// UnwindRule tells how to get from a frame to its caller: struct unwind_rule. A field that
// its kind does not use is 0.
type UnwindRule struct {
	CFA       CFAKind
	Arg       uint8
	RA        RAKind
	FP        FPKind
	CFAOffset int32
	RAOffset  int32
	FPOffset  int32
}

// UnwindRow says which rule holds from an address up to the next row. Low 16 bits:
// offset of the address in its block; high 16 bits: index into UnwindTable.Rules.
type UnwindRow uint32

// NewUnwindRow makes a row.
func NewUnwindRow(offset uint64, rule uint16) UnwindRow {
	return UnwindRow(offset) | UnwindRow(rule)<<16
}

// Offset returns the offset of the row's first address in its block.
func (r UnwindRow) Offset() uint64 { return uint64(r & 0xffff) }

// Rule returns the index of the row's rule.
func (r UnwindRow) Rule() int { return int(r >> 16) }

// UnwindTable has the rows of one file, by blocks of UnwindBlockBytes of text.
type UnwindTable struct {
	Base  uint64       // virtual address of block 0, a multiple of UnwindBlockBytes
	Rules []UnwindRule // Rules[0] is the zero one: no information
	Index []uint32     // one entry a block and one more: the first row at or behind the start of the block
	Rows  []UnwindRow
}

// Blocks of text that the table describes.
func (t *UnwindTable) Blocks() int { return max(len(t.Index)-1, 0) }

// TableID names a table in the kernel; 0 is none. No other table ever gets it.
type TableID uint64

// UnwindMapping says where a process maps code that has a table: struct unwind_mapping.
type UnwindMapping struct {
	Start, Limit uint64
	Text         uint64  // address of the first block of the table
	Table        TableID // 0 while the file has none, but may get one
	Slot         uint32  // of the table in the kernel; package bpf fills it in
	Blocks       uint32  // of the table
}

// UnwindChunk is a part of the mappings of a process: struct unwind_chunk.
type UnwindChunk struct {
	List     uint64 // whose it is: the kernel uses the memory of an element again at once
	Mappings [UnwindChunkMappings]UnwindMapping
}

// UnwindChunkKey names one: struct unwind_chunk_key.
type UnwindChunkKey struct {
	List  uint64
	Chunk uint32
	Pad   uint32 // 0
}

// KnownRows are the rows of a file, for the very file that they were made from: struct
// known_rows.
type KnownRows struct {
	Table  TableID
	Slot   uint32
	Blocks uint32
	Texts  [MaxFileTexts]FileText // an unused one has no pages
	Seal   uint64                 // package bpf fills it in
}
