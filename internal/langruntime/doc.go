// Package langruntime is the seam between the profiler and language runtimes, whose frames
// are not those of functions in files: an interpreter runs all functions of its language in
// one of its own, a compiler at run time puts them into memory that no file describes.
//
// A runtime takes part in four places:
//
//   - A file that holds one is recognized when it is read (package executable), by what the
//     file says of itself: a [Runtime] is what follows from a file alone.
//   - [Runtime.Open] gives the [Process] that says what the sampling programs have to know to
//     find its frames in a process. What it reads of the process is about that process alone.
//     They hold it by the identity of the process; that there is something is in the process's
//     list of mappings, which every sample looks at anyway: a process without a runtime costs
//     one comparison a frame.
//   - In BPF, frames that an interpreter runs are collected by one global function for each
//     runtime before the native stack is walked, and another one puts them behind the native
//     frames that run them. Where a runtime makes code, a global function is what goes from a
//     frame of that code to its caller, and puts its own frame in the place of the native one.
//     In the record such a frame is two words (record.RuntimeWord): kind, cookie and position;
//     and the object that tells what runs. Stacks are compared by these.
//   - [Process.Read] gives the [Function] that an object stands for. The process table has it
//     read soon after an object was first seen in a process, since objects die; by a worker,
//     whose waits are bounded. The cookie has what makes an object that one: if another
//     lies there by now, there is no name rather than another's.
//
// # What a new runtime touches
//
// A package beside cpython, which is pure, and a file beside python.bpf.h are its own. In other files it
// has a line or two, where the others have theirs; a test compares this list with where they are
// named, and others what these files say of each with one another:
//
//   - internal/bpf/src/runtime.h: enum runtime_kind, a struct of what its walk needs, a field in
//     struct runtime_process, its limits. And internal/record/runtime.go, the same in Go.
//   - internal/bpf/src/scratch.bpf.h: the state of its walk. internal/bpf/src/stack.bpf.h: what begins it,
//     what goes a frame up, what counts. C has no table of functions that a verifier takes.
//   - internal/bpf/src/seal.bpf.h and internal/bpf/seal.go: which struct is sealed.
//   - internal/executable/runtimes.go: what recognizes it in a file.
//   - receiver/customlabelsreceiver/metadata.yaml: its key below runtimes; what is made from that
//     follows. receiver/customlabelsreceiver/options.go: what the key switches off.
//   - .golangci.yml and docs/architecture.md: its package, and who may import it.
//
// The process table, the pipeline and the builder of profiles know kinds by number and name only.
package langruntime
