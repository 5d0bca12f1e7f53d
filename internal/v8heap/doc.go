// Package v8heap tells where a build of V8 keeps what a reader of Node.js thread
// contexts has to follow: from the map of a thread's async context to the native
// pointer in one of its values.
//
// The answer comes from what the executable says of itself, its V8 version and
// the metadata for post-mortem debuggers (symbols v8dbg_*), and from a table of
// versions that were looked at. A build that is not known, or that contradicts
// the table, is refused: there are no guesses.
//
// It reads ELF files only, no process.
//
// # What readers check
//
// Nothing in V8's heap is believed for itself. The sampled thread may be in the middle of a
// garbage collection. So each object on the way to a Node.js context is checked: its tag, a
// map word that is no forwarding address, the type of the map, the length of the table
// against the number of its buckets, the key, and the record's own valid and size. The
// offsets come from the release, which the executable exports along with metadata for
// debuggers that has to agree; the writer tells the offset of the record, too, and where it
// disagrees nothing is read.
package v8heap
