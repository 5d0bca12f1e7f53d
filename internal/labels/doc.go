// Package labels turns the raw label bytes of a sample into a canonical label
// set and a trace link.
//
// The BPF programs copy bounded bytes and nothing more; what these bytes mean
// (order, duplicates, key names, precedence between sources) is decided here,
// where it can be tested and fuzzed. The package is pure: it reads no memory
// but its arguments and imports only packages record and targets of ours.
//
// Rules, where the specifications leave a choice to the reader:
//
//   - Custom labels (v0, v1), and Go's: the first of several labels with one key
//     wins. Thread context (OTEP 4947): the last entry wins.
//   - Several sources: on the same key the thread context wins, then v1, then
//     v0, then Go's labels; among sources of one ABI the first block. The losing
//     value is counted as a conflict when it differs. The first non-zero Link wins
//     likewise.
//   - A key or value of which only a prefix was copied is kept as this prefix
//     and marks the whole set as truncated. Where the cut falls inside a UTF-8
//     sequence the incomplete sequence goes too, so that text stays text. A key
//     that was cut never displaces a complete one: they may be different keys.
//   - A block that is malformed contributes nothing and is reported as
//     record.OutcomeInvalid.
//
// A [Registry] knows the keys of each user, the rules for labels, and how much of their
// budgets users take; through a [Channel] of it go the samples of one kind of profile.
// What comes out of one user's sections depends on that user's sections alone, as long as
// he has his slot; idle users make room where there is none left. See docs/label-registry.md.
//
// Invariants: a [Set] and a [Decoded] never change once returned and may be
// shared between goroutines; a Channel belongs to one goroutine. [Decode] gives what a
// section means by itself, without users.
package labels
