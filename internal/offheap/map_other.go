//go:build !unix

package offheap

// Map returns nil: there is no such memory.
func Map(int) []byte { return nil }

// Unmap does nothing.
func Unmap([]byte) {}
