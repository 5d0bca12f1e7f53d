package unwind

// Source tells where the rows of a Table are from.
type Source uint8

// Sources of rows.
const (
	SourceNone       Source = iota // trampolines alone
	SourceEHFrame                  // .eh_frame
	SourceDebugFrame               // .debug_frame
)

// Reason tells why a description gives Rule 0, or only a part of a rule.
type Reason uint8

// Reasons for Rule 0; the first ones are counted by row, those from
// ReasonMalformed on by CIE or FDE.
const (
	ReasonNone          Reason = iota
	ReasonCFA                  // expression or register of the CFA that is not known
	ReasonReturnAddress        // return address neither undefined, nor at an offset from the CFA, nor in x30
	ReasonStackPointer         // caller's stack pointer that is not the CFA
	ReasonOffset               // offset that is out of range
	ReasonSignal               // signal frame that is not the kernel's
	ReasonRules                // rule beyond Limits.Rules
	ReasonFrameRegister        // FPUndefined in a rule: saved in another way than the kinds
	ReasonMalformed            // FDE that is cut short or has an instruction that is not known: the rest of it
	ReasonCIE                  // FDE whose CIE is missing, malformed, or of a version, augmentation or encoding that is not known
	ReasonOutside              // FDE of addresses outside of executable segments
	ReasonOverlap              // FDE that a later one cuts, or that describes the same addresses
	ReasonEntryBytes           // CIE or FDE that is too long: nothing is read from there on
	numReasons
)

// Stats tells what a Table was made of.
type Stats struct {
	Source       Source
	GoFunctions  int   // those of pclntab
	SectionBytes int64 // read of the section
	FDEs         int   // those whose rows are in the table
	Linkage      int   // spans of linkage tables without call frame information
	Clones       int   // ends of clone, and beginnings of threads and coroutines, without call frame information
	Trampolines  int   // signal trampolines found without call frame information
	CodeBytes    int   // of text without call frame information that was followed
	FromCode     int   // spans that came of that
	Counts       [numReasons]int
}
