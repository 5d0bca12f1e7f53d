// Package golabels finds out how to read the pprof labels of the goroutines of a
// Go program (runtime/pprof), from its executable alone.
//
// A thread has its current goroutine g in a thread-local slot, or in a register,
// and the way from there leads through structures of Go's runtime:
//
//	g -> g.m -> m.curg -> curg.labels
//
// None of this is an interface. The offsets change between releases, so they are
// taken from the executable's own debug information; without that, from a table of
// the releases that are known, by the version that the executable states. An
// executable with neither is refused: see the errors.
//
// The package is pure and keeps nothing: it reads an executable that is not
// trusted, within named bounds, and gives a Plan, which is a value.
//
// Debug information streams by: a unit of it may have dozens of MiB. The members of a few
// structures are kept, and of each type that may lead to the labels which one it refers to,
// outside of Go's heap. Only the abbreviations are held as a whole, there as well.
//
// Shared libraries written in Go are not looked at: each has a runtime, and a slot,
// of its own.
//
// # Trust
//
// A goroutine is the thread's own, or none. The way from a thread to its labels leads
// through m, which has the thread's id (m.procid); it is compared with the id that the
// kernel has. So an offset or a slot that is wrong after all, or a register that holds
// something else for the moment, gives no labels rather than another thread's. Debug
// information goes before the table of releases: a changed toolchain may state an unchanged
// version.
package golabels
