//go:build unix

package offheap

import "syscall"

// Map returns zeroed memory outside of Go's heap, whose pages are taken only when they are
// written; nil if there is none to be had.
func Map(n int) []byte {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return b
}

// Unmap gives back memory of Map, in whole.
func Unmap(b []byte) { _ = syscall.Munmap(b) } // it was mapped in whole: it cannot fail
