// Package offheap has memory outside of Go's heap, for large tables without pointers. Each byte
// in the heap takes up to two, as the garbage collector lets it grow to double its size, and what
// a list has outgrown stays until the next collection; of this memory, a page is taken when it is
// written first and given back at once.
package offheap
