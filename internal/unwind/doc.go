// Package unwind compiles the call frame information of an ELF file (.eh_frame,
// or .debug_frame where a function has only that) to rows: for each address in the
// file, how to get from a frame to its caller. Rows are what BPF looks up at
// each frame of a stack, so they are small (4 bytes), sorted, found within one
// block of text, and refer to the few rules that a file has.
//
// What is compiled are three columns: the canonical frame address (CFA), the
// return address and the frame register. The others are only known in the
// interrupted frame. The caller's stack pointer is the CFA: code of which something else is
// said, as glibc's setcontext, has no rows.
//
// Files are hostile. What is kept is bounded by Limits; a description that is cut
// short or absurd costs the function that it describes its rows and no more.
//
// # Rows
//
// A row is half an offset within a block of 1 KiB of text, half the number of a rule. An
// index gives each block its rows, so a lookup is one read of the index and a search among
// the few rows of a block, which share two or three cache lines; a search over a whole
// table would touch twenty. A file has a few hundred different rules.
//
// # What is read
//
// A file is read once, front to back. A description may only refer to what came before it,
// as all linkers write it; so nothing that a hostile file says makes a section be read
// twice, and 64 KiB of it are held at a time.
//
// Where descriptions overlap, the one that starts last holds, as for the runtimes that
// search .eh_frame_hdr. Between descriptions nothing holds.
//
// DWARF expressions are recognised by their bytes, not evaluated. Four shapes are all that
// compilers, linkers and C libraries write for the CFA and the frame register, PLT entries,
// a CFA that is loaded from the stack and the kernel's signal frames among them; of 28
// million places in 3,000 objects of two architectures (`make unwind-rows`) 400 have
// another one, and no row: Rule 0, "no information", counted by Reason. So BPF has no
// interpreter, and no row means what its file did not say.
//
// What nothing describes, as musl, is followed by package codeframes, up to a bound on its
// size: what is larger is not compiled, or keeps frame pointers.
//
// Signal trampolines are told by their code where a C library has not described them (musl,
// the vDSO of aarch64): the system call that nothing else makes. So are the places where
// threads begin in Go and in musl on aarch64, which have their maker's frame pointer.
//
// Go's rows come from the table by which its runtime unwinds (package gopclntab), because
// its .debug_frame knows no frame pointers, and stripped programs have none. Functions that
// switch stacks are left to the frame pointer, which leads to the other stack.
package unwind
