// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"runtime"

	"google.golang.org/protobuf/encoding/protowire"
)

// In wraps bytes as a field in a field and so on, the outermost number first.
func In(data []byte, numbers ...protowire.Number) []byte {
	for i := len(numbers) - 1; i >= 0; i-- {
		data = protowire.AppendBytes(protowire.AppendTag(nil, numbers[i], protowire.BytesType), data)
	}
	return data
}

// Empty are so many empty messages, as a field in a field and so on.
func Empty(n int, numbers ...protowire.Number) []byte {
	last := len(numbers) - 1
	return In(bytes.Repeat(In(nil, numbers[last]), n), numbers[:last]...)
}

// Number is a field with a number.
func Number(field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), n)
}

// Frame is a request in a file of many.
func Frame(request []byte) []byte {
	n := len(request)
	return append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, request...)
}

// Nested is a request with a label whose value is a list in a list and so on, of about so
// many bytes.
func Nested(size int) []byte {
	b := make([]byte, size)
	at := size
	for at > 64 {
		for _, field := range []byte{1, 5} { // a value of a list, the list of a value
			head := protowire.AppendVarint([]byte{field<<3 | 2}, uint64(size-at))
			at -= len(head)
			copy(b[at:], head)
		}
	}
	return In(b[at:], 2, 6, 2)
}

// Live is the memory that is in use, in bytes.
func Live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
