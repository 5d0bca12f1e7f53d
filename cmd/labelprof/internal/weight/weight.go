// SPDX-License-Identifier: Apache-2.0

package weight

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxNesting bounds messages in messages: decoders call themselves for each. Profiles
// have seven, and two more for each list in a list of a label's value.
const maxNesting = 64

// ErrNested says that decoding would take too much of a stack.
var ErrNested = fmt.Errorf("more than %d levels of nesting", maxNesting)

// ErrWire says that bytes are no protobuf, or of something else.
var ErrWire = errors.New("its bytes are not those of a message of protobuf")

// TooLargeError says that decoding would take too much memory.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("decoded it would take more than %s (--max-memory allows more)", Mebibytes(e.Limit))
}

// Mebibytes says how many there are in so many bytes.
func Mebibytes(n int64) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }

// weight sums up what a message takes.
type weight struct {
	bytes, limit int64
}

// Estimate returns the bytes that a message takes when it is decoded, never less than that.
// It fails with ErrWire, ErrNested, or a *TooLargeError as soon as they are above the limit.
func Estimate(data []byte, s *Shape, limit int64) (int64, error) {
	w := weight{limit: limit}
	err := w.message(data, s, 0)
	return w.bytes, err
}

func (w *weight) message(data []byte, s *Shape, depth int) error {
	if depth > maxNesting {
		return ErrNested
	}
	w.bytes += s.Bytes
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return ErrWire
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
				return ErrWire
			}
			w.bytes += scalarBytes
		} else {
			value, length := protowire.ConsumeBytes(data)
			if length < 0 {
				return ErrWire
			}
			n = length
			if err := w.field(value, s.Fields[number], depth); err != nil {
				return err
			}
		}
		if w.bytes > w.limit {
			return &TooLargeError{w.limit}
		}
		data = data[n:]
	}
	return nil
}

func (w *weight) field(value []byte, f Field, depth int) error {
	w.bytes += f.PerByte * int64(len(value))
	switch {
	case f.Message == nil:
		return nil
	case f.Message.Fields == nil:
		w.bytes += f.Message.Bytes // nothing in it takes memory
		return nil
	default:
		return w.message(value, f.Message, depth+1)
	}
}
