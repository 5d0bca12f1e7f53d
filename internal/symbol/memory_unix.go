//go:build unix

package symbol

import (
	"syscall"
	"unsafe"
)

// mapBytes returns zeroed memory outside of Go's heap, whose pages are taken
// only when they are written; nil if there is none to be had.
func mapBytes(n int) []byte {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return b
}

func unmapBytes(b []byte) { _ = syscall.Munmap(b) } // it was mapped in whole: it cannot fail

// entriesIn uses memory of mapBytes for entries, which hold no pointers.
func entriesIn(b []byte) []entry {
	return unsafe.Slice((*entry)(unsafe.Pointer(&b[0])), len(b)/entryBytes)
}
