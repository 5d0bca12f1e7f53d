package offheap

import "unsafe"

// Of uses memory of Map for as many values as fit, which must hold no pointers.
func Of[T any](b []byte) []T {
	var v T
	if len(b) < int(unsafe.Sizeof(v)) {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(v)))
}

// Reserve is an empty list with room for n values without pointers, and what gives its memory
// back, after which it must not be used. If there is no such memory, it is Go's.
func Reserve[T any](n int) (list []T, free func()) {
	var v T
	b := Map(n * int(unsafe.Sizeof(v)))
	if b == nil {
		return nil, func() {}
	}
	return Of[T](b)[:0], func() { Unmap(b) }
}
