// Package v8js reads the JavaScript functions of V8 as Node.js 20 to 26 has it, and tells the
// sampling programs how to find them in frames (internal/bpf/src/v8.bpf.h).
//
// # Sources
//
// Files of V8 11.3, 11.8, 12.4, 12.9, 13.6, 14.1 and 14.6, all below src: execution/frames.h and
// frame-constants.h for what frames have; objects/shared-function-info.tq, script.tq,
// scope-info.tq, string.tq, bytecode-array.tq, objects/code.h, deoptimization-data.h and
// instruction-stream.h for objects; codegen/source-position.h and source-position-table.cc,
// baseline/bytecode-offset-iterator.h, interpreter/bytecodes.h and
// deoptimizer/translation-opcode.h and deoptimization-data.cc,
// codegen/safepoint-table.h and maglev-safepoint-table.h for tables; deoptimizer/deoptimizer.cc and
// its parts for x64 and arm64 for exits; objects/code-kind.h and builtins/builtins.cc for copies of
// the interpreter's entry. Offsets that no file gives, and kinds of code, were observed in Node.js
// 20 to 26.
//
// # Which file, which offsets
//
// A file that exports V8's version and its metadata for post-mortem debuggers (symbols v8dbg_*),
// as Node.js does. What the metadata lack is in a table by version, and what both have must
// agree. A version that is not in the table, or a build with compressed
// pointers, is refused. So are 11.8 and 14.1 on aarch64: nothing in the table differs there, but no
// Node.js with them was compared with what the sampling programs make of its frames.
//
// # What a frame says
//
// A JavaScript frame has its JSFunction, which leads to the SharedFunctionInfo: what all closures
// of a function have in common. While the interpreter runs it, the frame has the offset in the
// bytecode. Else the instruction is in a Code, which is found by the InstructionStream that
// begins before it: no list of code is needed, nor the function's own, from which code that was
// entered in a loop or is about to go is missing. With --interpreted-frames-native-stack that Code
// may be the function's own copy of the interpreter's entry, which is of a builtin's kind.
//
//   - Code of the baseline compiler has a table from its instructions to those of the bytecode.
//   - Code of an optimizing compiler says of each call which functions it has put into itself
//     there (the deoptimization data), and of other instructions by its source position table.
//     So a frame may be several functions. A call during which the code becomes invalid, because
//     what was taken for granted has changed, returns to an exit: that stands for the call.
//
// Lines are those of the source position tables. A function whose table V8 has not made yet has
// the line on which it begins only. Maglev makes no such tables before V8 13.6, and in early
// releases of that: what is interrupted in its code is the function that was compiled, without
// those put into it; what calls is right there, too.
//
// A builtin written in JavaScript's place (Array.prototype.map) is a function without a file. An
// asynchronous function that waits is not on the stack.
//
// # Another in its place
//
// Objects move and die. The cookie of a function is made of its address, the number of its
// script, its own number there and the length of the source; that of code, also of where it
// begins, of its size and of its kind. What is read counts only if it is the same before and after.
// So is each word that has led from one object to the next: the collector may have moved a name,
// a source or a table meanwhile, and others may be in their places. What it has moved just now is
// found by the address that it leaves behind. Two functions that agree in all
// of that, one in the place of the other, would have to be of different isolates of one process,
// in scripts of the same length. A compilation of a function that has the place, the size and the
// kind of an earlier one is taken for it. A function that is dead when it is read, whose object and
// script are still as they were, has the name that lies where its own was.
package v8js
