// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of what is decoded.
const (
	// maxNesting bounds messages in messages: decoders call themselves for each. Profiles
	// have seven, and two more for each list in a list of a label's value.
	maxNesting = 64
	// jsonObjectBytes is what the largest message takes that `{}` can be.
	jsonObjectBytes = 600
)

// errNested says that decoding would take too much of a stack.
var errNested = fmt.Errorf("more than %d levels of nesting", maxNesting)

// errWire says that bytes are no protobuf, or of something else.
var errWire = errors.New("its bytes are not those of a message of protobuf")

// tooLargeError says that decoding would take too much memory.
type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("decoded it would take more than %s (--max-memory allows more)", mebibytes(e.limit))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }

// weight estimates the memory that a message takes when it is decoded, never less than
// that, without decoding it: two bytes can stand for hundreds.
type weight struct {
	bytes, limit int64
}

// checkWeight says whether a message fits into the limit.
func checkWeight(data []byte, s *shape, limit int64) error {
	w := weight{limit: limit}
	return w.message(data, s, 0)
}

func (w *weight) message(data []byte, s *shape, depth int) error {
	if depth > maxNesting {
		return errNested
	}
	w.bytes += s.bytes
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errWire
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
				return errWire
			}
			w.bytes += scalarBytes
		} else {
			value, length := protowire.ConsumeBytes(data)
			if length < 0 {
				return errWire
			}
			n = length
			if err := w.field(value, s.fields[number], depth); err != nil {
				return err
			}
		}
		if w.bytes > w.limit {
			return &tooLargeError{w.limit}
		}
		data = data[n:]
	}
	return nil
}

func (w *weight) field(value []byte, f field, depth int) error {
	w.bytes += f.perByte * int64(len(value))
	switch {
	case f.message == nil:
		return nil
	case f.message.fields == nil:
		w.bytes += f.message.bytes // nothing in it takes memory
		return nil
	default:
		return w.message(value, f.message, depth+1)
	}
}

// checkJSONWeight is checkWeight for JSON, by its objects and commas.
func checkJSONWeight(data []byte, limit int64) error {
	bytes, depth := int64(len(data)), 0
	quoted := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
			if quoted {
				bytes += entryHeadBytes
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
			bytes += scalarBytes
			if c == '{' {
				bytes += jsonObjectBytes
			}
		case c == '}' || c == ']':
			depth--
		case c == ',':
			bytes += scalarBytes
		}
		if depth > maxNesting {
			return errNested
		}
		if bytes > limit {
			return &tooLargeError{limit}
		}
	}
	return nil
}
