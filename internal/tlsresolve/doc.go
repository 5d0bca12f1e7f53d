// Package tlsresolve finds a thread-local variable of another process: from
// an ELF file and a reader of the process's memory to the variable's address
// on each thread, without running code in the process.
//
// The work is cut by how often its inputs change. A Plan says how one file
// reaches the variable (its TLS model and where the dynamic loader leaves the
// answer); it depends on the file alone. Plan.Resolve reads the relocated
// slots in one process and yields a Location, which holds for all threads of
// the process. Location.Address evaluates it for one thread; the BPF programs
// apply the same rules at each sample, and this one cross-checks them.
//
// Where the slots do not tell all, Modules reads what the dynamic loader keeps in
// the process: its lists of libraries (struct r_debug), and glibc's table of TLS
// modules with their generations, at the offsets that the process's own C
// library exports for debuggers (ThreadDB).
//
// The rules follow Drepper, "ELF Handling For Thread-Local Storage", the
// TLSDESC addenda for x86-64 and aarch64, and what glibc and musl store. When
// memory does not look the way these rules say, the answer is an error and
// never a guess: a wrong location would read foreign bytes as labels.
//
// The package is pure: it does no I/O of its own and builds everywhere. Which
// files and symbols to try, and when to retry, is the caller's business.
//
// # What the loader leaves open
//
// General-dynamic variables of libraries that were there at the start are read from static
// TLS, because the loader says that they lie there: fewer reads at each sample, and the
// same place as that of the definition that took theirs.
//
// A module of glibc counts from its generation on. A thread that has not come to know of a
// dlclose and a dlopen behind it still has the old library's block under the new one's id.
// The loader gives out the generation when all that it loads is relocated, so package
// process looks at a place in the DTV again for 50 ms after it was found.
//
// A slot that holds what the file has is relocated only if a definition stands there. The
// loader binds a library's own variable to the first definition in the process; whether an
// offset of 0 is its last word is told by the module ids of all definitions, else the slot
// stays not_relocated. A glibc before 2.34 does not tell the ids: there it is the last word
// if the slot still says so after 50 ms, since the loader writes module and offset one right
// after the other.
//
// musl's struct dso is searched for its copy of PT_TLS (address, sizes and alignment, 32
// bytes that must agree), because musl exports no offsets; the module id stands behind it.
package tlsresolve
