// Package codeframes finds out from machine code where its frames are: for functions that
// their file describes nowhere, as those of musl, whose distributions build it without call
// frame information.
//
// Code is decoded from the beginnings of functions on, along its jumps. Followed are the
// stack pointer, the frame register, where that was saved, and on aarch64 the link register:
// each as a distance from the canonical frame address (CFA). An instruction that does
// something else to one of them loses it. Where two ways to an instruction disagree, what
// they disagree about is not known there.
//
// What was followed has to prove itself. Where a function returns, the stack pointer must be
// back where it was at its entry, and so must the registers that it has to keep. If they are
// not, nothing is said of the whole function. Functions that never return are believed where
// most others of the file return as they should: code that keeps another stack than that of
// the processor, as some compilers of functional languages make it, never returns, but jumps to
// addresses that it finds there, by a register that functions of C keep for their callers.
//
// Beginnings are the symbols of functions, the targets of calls, addresses that code takes,
// and the entry of the program. What none of these reach is tried: as the beginning of a
// function, and as what an indirect jump of the function before leads to, which is what a
// table of jumps does. It is accepted if one of both is confirmed: by a return, or by meeting
// code that is known with the same frame.
//
// # The end of a stack
//
// By convention of both architectures the outermost frame has a frame pointer of zero. Code
// that sets the frame register to zero without having saved it is where a program or a
// thread begins: nothing has called it. The entry of a file is that from its first instruction
// on, if it does so later: glibc's dynamic loader for x86-64 has loaded the program by then.
//
// # Bounds
//
// Code is hostile. Work is bounded by a number of instructions for each byte of code, memory by
// 25 bytes or so for each: of code with more functions, ways, states or rows for its size than
// compilers make, nothing is said. What is said wrongly concerns processes that run that code.
package codeframes
