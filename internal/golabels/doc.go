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
// trusted, within named bounds, and gives a Plan, which is a value. What debug
// information says of the offsets is not believed blindly either: readers check
// m.procid against the thread that they look at, so that a wrong offset gives no
// labels rather than another thread's.
//
// Shared libraries written in Go are not looked at: each has a runtime, and a slot,
// of its own.
package golabels
