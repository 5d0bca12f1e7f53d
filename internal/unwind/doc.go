// Package unwind compiles the call frame information of an ELF file (.eh_frame,
// or .debug_frame where a function has only that) to rows: for each address in the
// file, how to get from a frame to its caller. Rows are what BPF looks up at
// each frame of a stack, so they are small (4 bytes), sorted, found within one
// block of text, and refer to the few rules that a file has.
//
// What is compiled are three columns: the canonical frame address (CFA), the
// return address and the frame register. The others are only known in the
// interrupted frame. Expressions are recognised by their bytes, not evaluated:
// PLT entries, a CFA that is loaded from the stack, and the kernel's signal
// frames are all that compilers and C libraries write. Anything else gives Rule
// 0, "no information", and is counted by Reason.
//
// Files are hostile. All is read once, front to back, through a buffer of some
// tens of KiB; what is kept is bounded by Limits; a description that is cut
// short or absurd costs the function that it describes its rows and no more.
//
// Code of the Go compiler has no .eh_frame; its rows are made of the table that
// Go's runtime unwinds by, see package gopclntab.
package unwind
