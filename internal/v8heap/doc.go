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
package v8heap
