// Package hotspot reads the methods that HotSpot 17, 21 and 25 run, and tells the sampling
// programs where a process has its code heaps (internal/bpf/src/hotspot.bpf.h walks its frames).
//
// # Sources
//
// The OpenJDK files of these versions: runtime/vmStructs.hpp and .cpp for what a libjvm says of
// itself; memory/heap.cpp for segment maps; code/codeBlob.hpp, nmethod.hpp, pcDesc.hpp,
// scopeDesc.cpp and compressedStream.hpp (from 20 on utilities/unsigned5.hpp) for compiled code;
// oops/method.hpp, constMethod.hpp, constantPool.hpp and symbol.hpp for names and lines;
// cpu/x86 and cpu/aarch64: frame_*.hpp, macroAssembler_*.cpp, stubGenerator_*.cpp for frames.
//
// # Which file, which offsets
//
// A file that defines the dynamic symbol gHotSpotVMStructs is a libjvm. The tables that it
// exports name structs, fields, offsets, addresses of static variables and constants. Their
// entries are pointers that the loader sets: so they are read from each process, once, and
// nothing that one process says holds for another. A version that is not 17, 21 or 25, or that
// lacks a field, is not supported: its stacks stay native.
//
// What no table tells is the same in these versions but for the following, and was compared with
// known stacks of each on x86-64 and aarch64. On aarch64 a method finds its caller's stack pointer in
// x13 (17) or x19 (21, 25: r19_sender_sp of templateInterpreterGenerator_aarch64.cpp), 25 polls once more
// when it has taken down a native method's frame, and return addresses are signed with
// -XX:UseBranchProtection=standard only.
//
// The interpreter's room is larger until it has been made. Then what it has not used is given back
// (code/stubs.cpp: deallocate_unused_tail), and stubs and compiled code may come there, for which its limit would be
// wrong for as long as the process lives. So a process is starting until all of the room is in use
// (_queue_end is _buffer_limit). No method runs before that.
//
// # Frames
//
// A frame of Java replaces the native one, since its code belongs to no file. Its object tells
// by its lower bits what it is:
//
//   - record.HotSpotCode: the CodeBlob that holds the code: an nmethod, whose position is the offset
//     behind the instruction from the begin of its code; or a stub, which has a name only.
//   - record.HotSpotMethod: the Method that the interpreter runs; the position is 1 + the index of the
//     bytecode. 0 stands for one that is not known.
//
// # Lines and inlined methods
//
// What a compiler has inlined comes from the nmethod's scopes. At default flags HotSpot keeps
// scopes for calls and safepoints only. For the innermost frame, between two of these, the next
// one tells: function and line are then those of the call or the loop that comes next. Behind the
// last one it is the line of the method itself. A method without any has its first line: one that
// calls nothing and whose loops have no safepoints, of which there are more with the serial collector.
//
// # Cookies
//
// Code is freed and its place used again, and so is the memory of classes that were unloaded.
// The cookie of an nmethod is made of its compile id, which counts up in a process, and its
// Method; that of a Method of its ConstMethod, constant pool, indices, and the name of its class,
// by the place of the symbol, its hash and its first letters. What is read counts only if the
// cookie is the same before and after.
//
// A method that the interpreter ran, and whose class was unloaded before it is read, may still be
// there as it was, where another loader's class keeps the name of its own. The symbols of the method and of its
// file may have gone: they must have references (Symbol::_hash_and_refcount). One whose place
// is used again by then is not noticed: the place would have to be that of a symbol that nothing else in the
// process had, and have been given up, freed and used again in the few milliseconds until the method is read.
//
// Freed code keeps its cookie until its place is used again, while its methods may be another
// class's by then. So its block has to be in use afterwards: collectors free code before they
// free the metadata of unloaded classes (ZUnload::purge; PSParallelCompact and SerialFullGC:
// free_nmethods() comes before ClassLoaderDataGraph::purge()). 25 frees an nmethod's tables before
// its block, and takes away the pointers to them with that (nmethod::purge).
package hotspot
