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
// Stacks are a trie of locations from the root function to the leaf, and beside it one of frames,
// which is what a flame graph has; label sets are a trie of labels, those that come often first,
// so that what is alike is there once. A parent has a smaller number than its children, so that
// sums over subtrees, whether a filter holds, and whether something stands on the way to a leaf,
// are one pass over an array. Where a function, a module or a type is the first of its kind on
// the way is marked when a stack comes: sums over these nodes count it once.
//
// A query numbers the frames of a segment as a walk along the trie meets them: a full segment
// has these numbers. All that is below a frame is one stretch of numbers then, and its time the
// difference of two running sums. What is drawn is put together from all segments, from the root
// on, the frames with the most time first: nothing is made of what is too small to be drawn. The
// running sums of full segments are kept until something else is selected.
//
// Times of a segment can always be added up: it takes no more when they could not. Sums over
// segments stay at the largest number there is, 292 years.
//
// The package knows no format: who reads OTLP or pprof fills in Sample. Texts are any
// bytes that the caller lets pass; bounds on the length of a text are the caller's, bounds
// on their number are here.
package samplestore
