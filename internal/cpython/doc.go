// Package cpython reads the functions of CPython 3.11 to 3.14, and tells the sampling programs
// where a process has its Python frames (internal/bpf/src/python.bpf.h walks them).
//
// # Sources
//
// The headers of CPython 3.11.7, 3.12.1, 3.13.0, 3.13.15 and 3.14: Include/internal/pycore_runtime.h,
// pycore_interp.h, pycore_frame.h (3.14: pycore_interpframe_structs.h), pycore_debug_offsets.h,
// Include/object.h, Include/cpython/pystate.h, code.h and unicodeobject.h; Objects/locations.md
// (3.13 and later: InternalDocs/code_objects.md) for the location table.
//
// # Which file, which offsets
//
// A file that defines the dynamic symbols _PyRuntime, PyCode_Type and Py_Version holds a CPython:
// an executable, which exports them for its extensions, or libpython3. From 3.13 on _PyRuntime
// begins with _Py_DebugOffsets, which the linker has filled: offsets are taken from the file
// and checked. The places of these offsets differ by minor version, as do the structs of 3.11
// and 3.12, for which there is a table. Other versions and releases that are not final are not
// supported: their stacks stay native.
//
// # Free-threaded builds
//
// Without the global interpreter lock, objects have a larger header, since the thread that owns one
// counts its references apart: what leads to the rest of an object begins 16 bytes later. All else
// is where _Py_DebugOffsets says, and the lists of threads and frames are the same. 3.13 has one
// copy of a function's instructions, which no thread changes: a frame says its position as in other
// builds. In 3.14 each thread has a copy of its own (co_tlbc), and its position in that: such builds
// are not supported.
//
// # Which thread
//
// The thread's state is looked for in the lists of interpreters and threads, by the thread id
// that the thread has in its own PID namespace (native_thread_id). That needs no knowledge of
// the C library, nor a symbol that is stripped (_Py_tss_tstate), nor a word with user space
// first: the first sample of a new thread has its frames. A thread on whose stack a
// subinterpreter runs has a state with frames in two interpreters: which is the inner one, the
// places on the C stack tell that the frames lead to. One with frames in three is left native.
//
// # Which native frame
//
// Each native evaluation has something on the C stack that the frames lead to: its _PyCFrame
// (3.11), or the frame that it puts below those that it runs (3.12 and later). The native frame
// around that address is the evaluation, wherever a compiler has put its code: cold parts,
// tail-calling interpreters and stripped files are no special cases. Python frames for which no
// native frame comes are left out and counted. On aarch64 the address of a native frame is not known
// once one was found by its frame pointer: from there on, Python frames may stand one native
// frame too far out.
//
// A generator or coroutine that runs is a frame like others. What awaits it, but does not run,
// is not on the stack.
//
// # What a frame says
//
// The code object and the last instruction. A code object may be freed and another one lie in
// its place before it is read; so the sampling programs make a cookie of what differs between
// two code objects: where its names and tables lie, its size and first line, and the length, 32
// bytes of the begin and 32 of the end of its qualified name. Names are read only if the cookie is
// still the same before and after. Two code objects that agree in all of that, one made in place of
// the other, could differ in the middle of a long name, in the text of the file's name and in lines.
//
// A freed code object keeps its cookie until its place is used again, where something else keeps
// its qualified name; its file's name and lines may have gone, and others lie in their places. So it
// must have its type and references, before and after: as long as it has them, what it leads to is
// its own. When it is freed it has 0 references. Then pymalloc writes the address of the next free
// block over them, and malloc, which larger objects come from, may write over the type as well. What
// a count can be, that of immortal objects included, is in Include/object.h (3.14: refcount.h). One
// case is not noticed: an allocator in the place of malloc, with PYTHONMALLOC=malloc, that leaves an
// address below 16 GiB there, from the heap of an executable with a fixed address, and the type.
package cpython
