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
package tlsresolve
