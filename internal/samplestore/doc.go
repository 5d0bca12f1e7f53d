// Package samplestore keeps labelled samples in bounded memory and answers what a page
// of flame graphs asks about them: how much time, when, with which labels, in which
// functions.
//
// Samples lie in segments, in the order in which they came. Each segment has its own
// tables of strings, locations, stacks and label sets, so that the oldest segment can
// leave as a whole when memory is short; what left is counted. A segment only grows at
// its end: a query takes a snapshot of slice headers under the lock and works on them
// without it, so that nobody who looks holds up what comes in.
//
// Stacks are a trie from the root function to the leaf. A parent has a smaller number than
// its children, so that sums over subtrees, and whether something stands on the way to a
// leaf, are one pass over an array, and the cost of a query hardly depends on the depth of
// stacks.
//
// The package knows no format: who reads OTLP or pprof fills in Sample. Texts are any
// bytes that the caller lets pass; bounds on the length of a text are the caller's, bounds
// on their number are here.
package samplestore
