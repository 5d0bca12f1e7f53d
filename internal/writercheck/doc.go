// Package writercheck judges programs that publish labels by the specifications of the
// formats: which rule holds, which is broken, which could not be seen.
//
// [Rules] is the table: each rule has a place in a specification and what to do about it.
// [Watch] looks at a running process for some time, many times a second: at the files that it
// maps, at its process context, and at what its threads have published, each of which it stops
// for that (package labelread). The judges themselves are pure: they take symbols, headers
// and records, and count in a tally how often a rule held or was broken.
//
// It reads what is published itself, beside the receiver's readers, because those are
// forgiving: they take what they can use, and do not say which rule the rest breaks. Where the
// variables are is asked of the receiver's own code (process.Inspect), and so is the way to the
// records of Node.js and to the labels of Go's goroutines, for which there are no
// specifications of the memory in between.
//
// A process is hostile input: what is read of it is bounded by the limits of package record and
// by those here, nothing that it publishes is believed, and what is shown of it is cut. Reading
// can be kept waiting by the process; the caller of Watch has to be able to give up.
package writercheck
